"""The background workers: several procrastinate processes, each with several jobs at a time."""

from __future__ import annotations

import sys
from pathlib import Path

from ledger.addresses import BASE_DIR
from loadtest.servers import EmbeddedServer
from loadtest.servers.children import child_environment

#: jobs at a time. One import may use more of them than one process has, but not more than all processes have
CONCURRENCY = 4


class BackgroundWorker(EmbeddedServer):
    """`manage.py procrastinate worker`: imports, and the scheduled scan."""

    name = "worker"
    stop_timeout = 60.0  # the chunk of an import that is under way ends first

    def __init__(self, data: Path | str | None = None, *, number: int = 1) -> None:
        super().__init__(data)
        self.number = number
        self.label = f"worker-{number}"

    def command(self) -> list[str]:
        manage = [sys.executable, str(BASE_DIR / "manage.py"), "procrastinate", "worker"]
        options = {
            "name": self.label,
            "concurrency": CONCURRENCY,
            "delete-jobs": "successful",
            "shutdown-graceful-timeout": 2,
        }
        return [*manage, *(f"--{name}={value}" for name, value in options.items())]

    def environment(self) -> dict[str, str]:
        return child_environment()

    def answers(self) -> bool:
        return True  # it has no address: it asks the queue for work
