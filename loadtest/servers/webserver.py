"""The ledger behind HTTP, as in production: gunicorn with several processes, each with several threads.

A trial's callers reach different server processes, so a lock inside one process protects nothing.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil

from ledger.addresses import BASE_DIR
from loadtest.servers import EmbeddedServer, ServerError
from loadtest.servers.children import child_environment
from lost_update_lab.embedded.base import tail
from lost_update_lab.embedded.ports import free_port

#: workers × threads is the number of connections to PostgreSQL (max_connections 200). A waiting lock holds a thread
WORKERS, THREADS = 4, 32
#: so more workers have fewer threads each
MOST_WORKERS = 32


class WebServer(EmbeddedServer):
    """`gunicorn ledger.wsgi` on a loopback port, with the servers that this process knows.

    As a context manager it runs from ready to ended. It ends with this process, however this process ends.
    """

    name = "web"
    #: ends it at once: no client waits for an answer any more, and the graceful way takes 2 s
    stop_signal = signal.SIGINT
    start_timeout = 60.0

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        port: int = 0,
        workers: int = WORKERS,
        threads: int | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        """`port`: 0 means any free one. `threads`: of each worker; by default, as many as there are connections for.
        `environment`: further variables for the server."""
        super().__init__(data)
        self.port = port or free_port()
        self.workers = workers
        self.threads = threads or min(THREADS, WORKERS * THREADS // workers)
        self.extra = environment or {}
        #: a folder that is removed with the server's others, also if gunicorn is killed
        self.metrics = self.run / "metrics"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        super().prepare()
        shutil.rmtree(self.metrics, ignore_errors=True)
        self.metrics.mkdir(parents=True)

    def command(self) -> list[str]:
        options = {
            "config": BASE_DIR / "ledger" / "http" / "gunicorn.py",
            "bind": f"127.0.0.1:{self.port}",
            "workers": self.workers,
            "threads": self.threads,
            "keep-alive": 75,  # a connection that the server closes under a request is an unknown outcome
            "graceful-timeout": 5,
            "log-level": "warning",
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        return [sys.executable, "-m", "gunicorn", "ledger.wsgi", "--preload", *flags]

    def environment(self) -> dict[str, str]:
        return {**child_environment(), "METRICS_DIR": str(self.metrics), **self.extra}

    def answers(self) -> bool:
        with urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as answer:  # noqa: S310
            return bool(json.load(answer)["status"] == "ok")

    def recycle(self) -> None:
        """SIGKILL the worker processes; gunicorn forks new ones. On return the old ones are dead and can write nothing
        more, and the new ones answer. Raises ServerError if no new ones come up."""
        if not self.running:
            raise ServerError(f"the web server has ended. {tail(self.log)}")
        old = psutil.Process(self.pid).children()
        for process in old:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        while any(_lives(process) for process in old):
            time.sleep(0.01)
        self._wait_until_it_answers()


def _lives(process: psutil.Process) -> bool:
    """Return whether the process lives. A zombie that gunicorn has not reaped yet writes nothing more."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
