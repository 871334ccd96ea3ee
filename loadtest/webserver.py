"""The ledger behind HTTP, as in production: gunicorn, several processes with several threads each.

A trial's callers meet each other in different server processes, so a lock inside one process protects nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from ledger.addresses import BASE_DIR, addresses
from loadtest.servers import Server, ServerError
from loadtest.servers.ports import free_port

#: workers × threads connections to PostgreSQL (max_connections 200); a waiting lock holds a thread
WORKERS, THREADS = 4, 32


class WebServer(Server):
    """`gunicorn ledger.wsgi` on a loopback port, against the servers that this process knows.

    As a context manager: started and ready … ended. Ends with this process, however this process ends.
    """

    name = "web"
    start_timeout = 60.0

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        port: int = 0,
        workers: int = WORKERS,
        threads: int = THREADS,
        environment: dict[str, str] | None = None,
    ) -> None:
        """`port`: 0 is any free one. `environment`: further variables for the server."""
        super().__init__(data)
        self.port = port or free_port()
        self.workers, self.threads = workers, threads
        self.extra = environment or {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        options = {
            "bind": f"127.0.0.1:{self.port}",
            "worker-class": "gthread",
            "workers": self.workers,
            "threads": self.threads,
            "keep-alive": 75,  # a connection that the server closes under a request is an unknown outcome
            "graceful-timeout": 5,
            "log-level": "warning",
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        return [sys.executable, "-m", "gunicorn", "ledger.wsgi", "--preload", *flags]

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(BASE_DIR), *(os.path.abspath(entry) for entry in sys.path)])
        return {**os.environ, **addresses(), "PYTHONPATH": path, **self.extra}

    def answers(self) -> bool:
        with urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as answer:  # noqa: S310
            return bool(json.load(answer)["status"] == "ok")

    def recycle(self, patience: float = 8.0) -> None:
        """Replace the worker processes. On return the old ones are dead: no request of theirs can write any
        more. Raises ServerError if no new ones came up."""
        old = self._children()
        self._signal(signal.SIGHUP)
        deadline = time.monotonic() + patience
        while any(process.is_running() for process in old) and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in old:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(old, timeout=5)
        self._wait_until_it_answers()

    def _children(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children()

    def _signal(self, signum: int) -> None:
        if not self.running:
            raise ServerError(f"the web server has ended. {self.log_tail()}")
        os.kill(self.pid, signum)


def serving(host: str | None, **options: Any) -> WebServer | None:
    """Return a web server to start, or None when `host` names one that runs already."""
    return None if host else WebServer(**options)
