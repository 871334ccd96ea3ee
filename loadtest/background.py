"""The background workers: procrastinate, several processes, one job each at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ledger.addresses import BASE_DIR, addresses
from loadtest.servers import Server


class BackgroundWorker(Server):
    """`manage.py procrastinate worker`: imports, and the scheduled scan."""

    name = "worker"

    def __init__(self, data: Path | str | None = None, *, number: int = 1) -> None:
        super().__init__(data)
        self.number = number

    def command(self) -> list[str]:
        manage = [sys.executable, str(BASE_DIR / "manage.py"), "procrastinate", "worker"]
        return [*manage, "--name", f"worker-{self.number}", "--concurrency", "1"]

    def environment(self) -> dict[str, str]:
        return {**os.environ, **addresses(), "PYTHONPATH": str(BASE_DIR)}

    def answers(self) -> bool:
        return True  # it has no address: it asks for work
