"""The service under attack, started as a user would (`make serve`), and its processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil

from ledger.addresses import BASE_DIR
from loadtest.demo.serve import BACKGROUND_WORKERS
from loadtest.servers import EmbeddedServer
from loadtest.servers.embedded import status
from lost_update_lab.embedded.ports import free_port
from lost_update_lab.embedded.reaper import lives

#: seconds after which another worker takes over a killed worker's chunk of an import
IMPORT_LEASE = "3"


class Service(EmbeddedServer):
    """Web server and background workers, with their supervisor."""

    name = "serve"
    stop_signal = signal.SIGTERM
    start_timeout = 120.0
    stop_timeout = 60.0

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.port = free_port()

    def command(self) -> list[str]:
        return [sys.executable, "-m", "loadtest.demo.serve", "--port", str(self.port)]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(BASE_DIR), "IMPORT_LEASE": IMPORT_LEASE}

    def answers(self) -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/ready", timeout=5) as answer:
            return bool(json.load(answer)["status"] == "ok")

    def processes(self, kind: str) -> list[psutil.Process]:
        """Return its living processes of this kind, one of plan.KINDS."""
        if kind in ("postgres", "valkey"):
            pid = status()["pids"].get(kind)
            return _living([psutil.Process(pid)] if pid and psutil.pid_exists(pid) else [])
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.pid).children()
            if kind == "background-worker":
                return _living([each for each in children if _runs(each, "procrastinate")])
            masters = _living([each for each in children if _runs(each, "gunicorn")])
            return masters if kind == "web-server" else _living([w for m in masters for w in m.children()])
        return []

    def whole(self, seconds: float) -> bool:
        """Wait until the service is complete again: every process has a living successor, and the service reports
        that it is ready. Returns False after this many seconds."""
        wanted = {"web-server": 1, "web-worker": 1, "background-worker": BACKGROUND_WORKERS, "postgres": 1}
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            counts = {kind: len(self.processes(kind)) for kind in (*wanted, "valkey")}
            with suppress(OSError, ValueError):
                if all(counts[kind] >= most for kind, most in wanted.items()) and self.answers():
                    return True
            time.sleep(0.1)
        return False


def _runs(process: psutil.Process, program: str) -> bool:
    try:
        return program in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _living(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if lives(each)]
