"""The swarm as the callers of a trial: Locust, headless, in several processes, over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.addresses import BASE_DIR
from ledger.books import open_book
from ledger.models import Book
from ledger.names import WARM_UP
from loadtest.commandline.arguments import as_text
from loadtest.history import calls
from loadtest.history.calls import CallHistory
from loadtest.servers.webserver import WebServer
from loadtest.swarm.bank import Bank
from loadtest.swarm.options import REPORT, WARM_UP_ACCOUNTS
from loadtest.trials.case import TrialCase, Witness
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.stall import longest_stall, stalled_after
from lost_update_lab.embedded.ports import free_port
from lost_update_lab.embedded.reaper import REAPER

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
#: seconds for Locust's start, the warm-up and Locust's end, on a busy machine
OVERHEAD = 90.0


@dataclass(frozen=True, kw_only=True)
class Swarm:
    """`users` callers in `processes` processes, for `seconds` or for `iterations` operations each.

    `web`: the web server, which is recycled after the run so that nothing is in flight when the books are read. None:
    the user's own server at `host`. `tick(fraction)` is called with the progress.
    """

    host: str
    users: int = 20
    seconds: float | None = 5.0
    processes: int = 2
    iterations: int = 0
    at_least: int = 1
    look: float = 0.0
    deadline: float = 30.0
    options: dict[str, Any] = field(default_factory=dict)
    web: WebServer | None = None
    keep: Path | None = None
    tick: Callable[[float], None] = lambda fraction: None

    def __call__(self, case: TrialCase, book: Book) -> Witness:
        """Raises BankError if the server does not answer, or keeps its books in other databases than this process."""
        Bank(self.host).book(str(book.pk))
        with tempfile.TemporaryDirectory(prefix="lab-swarm-") as temporary:
            REAPER.remove(temporary)
            name = f"{case.strategy.replace(':', '.')}-{book.pk}"  # each case's history has its own folder
            folder = (self.keep or Path(temporary)).absolute() / name  # Locust runs in another folder
            folder.mkdir(parents=True)
            code = self._locust(case, book, folder)
            self._settle()
            seen = calls.read(folder)
            return Witness(
                history=seen,
                stall=longest_stall(seen.postings, stalled_after(case.settings.get("poll"))),
                unfinished=seen.counts()["unanswered"],
                doubts=self._doubts(code, seen, folder),
                facts={"users": self.users, "seconds": self.seconds, **_told(folder)},
            )

    def _locust(self, case: TrialCase, book: Book, folder: Path) -> int | None:
        """Run Locust. Return its exit code, or None if this method ended it."""
        warm_up = open_book(
            book.strategy,
            ((f"A{number:04d}", 0, None) for number in range(1, WARM_UP_ACCOUNTS + 1)),
            store=book.store,
            name=WARM_UP,
            values=book.settings,
            trusted=True,
        )
        with (folder / "locust.log").open("wb") as log:
            process = subprocess.Popen(
                self._command(case, book, warm_up, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=BASE_DIR,
                env={**os.environ, "PYTHONPATH": str(BASE_DIR)},
                start_new_session=True,
            )
            REAPER.watch(process.pid, signal.SIGTERM)
            try:
                return self._wait(process, folder / REPORT)
            finally:
                _end(process)

    def _command(self, case: TrialCase, book: Book, warm_up: Book, folder: Path) -> list[str]:
        port = free_port()  # with Locust's default port, two runs side by side would join into one
        options: dict[str, Any] = {
            "master-bind-host": "127.0.0.1",
            "master-bind-port": port,
            "master-port": port,
            "host": self.host,
            "users": self.users,
            "spawn-rate": self.users,
            "processes": self.processes,
            "book": book.pk,
            "warm-up-book": warm_up.pk,
            "history": folder,
            "workload": case.workload.slug,
            "contention": "hot" if case.workload.accounts == 1 else "spread",
            "accounts": case.workload.accounts,
            "workload-options": as_text(self.options),
            "iterations": self.iterations,
            "at-least": self.at_least,
            "look": self.look,
            "deadline": self.deadline,
            "seconds": self.seconds or 0,
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        return [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary", *flags]

    def _wait(self, process: subprocess.Popen[bytes], report: Path) -> int | None:
        """Wait for the master's report: by then every user is done and its journal closed. Locust's own end would take
        a second longer. Return its exit code if it ended by itself."""
        begun = time.monotonic()
        usual = (self.seconds or 1.0) + 2.0
        while not report.exists() and time.monotonic() - begun < usual + 2 * self.deadline + OVERHEAD:
            if (code := process.poll()) is not None:
                return code
            self.tick(min(1.0, (time.monotonic() - begun) / usual))
            time.sleep(0.02)
        return None

    def _settle(self) -> None:
        """Make sure that no request is in flight: each was answered, or the process that served it has ended."""
        if self.web is not None:
            self.web.recycle()

    def _doubts(self, code: int | None, seen: CallHistory, folder: Path) -> tuple[Doubt, ...]:
        doubts = []
        if not (folder / REPORT).exists():
            tail = "\n".join((folder / "locust.log").read_text(errors="replace").splitlines()[-5:])
            doubts.append(
                Doubt(f"the load test ended early (code {code}): {tail}", "read what Locust printed")
            )
        if self.web is None and seen.counts()["unanswered"]:
            doubts.append(
                Doubt(
                    "requests may still be in flight on a server that this command did not start",
                    "run without --host, or wait and run `manage.py reconcile`",
                )
            )
        return tuple(doubts)


def _told(folder: Path) -> dict[str, Any]:
    """Return what else the swarm's master recorded: the balance after a fixed time."""
    report = folder / REPORT
    looked = json.loads(report.read_text())["looked"] if report.exists() else None
    return {"looked": looked} if looked else {}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End whatever is left of Locust's processes."""
    REAPER.forget(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
