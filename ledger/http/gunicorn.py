"""How gunicorn serves the ledger: several processes with several threads, so callers of one account overlap."""

import os
import shutil
import tempfile
from typing import Any

#: the workers' metrics, one file for each process. Set before anything imports prometheus_client, which looks here once
metrics_dir = os.environ.get("METRICS_DIR") or tempfile.mkdtemp(prefix="lab-metrics-")
os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics_dir

bind = os.environ.get("BIND", "127.0.0.1:8000")
workers = int(os.environ.get("WEB_WORKERS", "4"))
#: slow clients hold no thread (docs/decisions/0012)
worker_class = "ledger.http.web_worker.WaitressWorker"
#: a caller that waits for a lock occupies a thread
threads = int(os.environ.get("WEB_THREADS", "8"))
#: open connections in each process. On many machines a process has 1024 file descriptors
worker_connections = 800
timeout = int(os.environ.get("WEB_TIMEOUT", "60"))
graceful_timeout = 10
keepalive = 30
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108  (heartbeat files, no secret)


def child_exit(server: Any, worker: Any) -> None:
    """A worker has ended: what it counted stays, its gauges go."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)


def on_exit(server: Any) -> None:
    shutil.rmtree(metrics_dir, ignore_errors=True)
