"""The callers of the workload `imports`: a swarm on the API, and background workers that import files meanwhile."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ledger.imports.stop import stop
from ledger.imports.upload import Upload, start_import
from ledger.models import Book, ImportRun
from loadtest.history.calls import CallHistory
from loadtest.history.journal import SUFFIX
from loadtest.servers import ServerError
from loadtest.servers.background import BackgroundWorker
from loadtest.swarm.import_history import history_of
from loadtest.swarm.run import Swarm
from loadtest.trials.case import TrialCase, Witness
from loadtest.verdict.evidence import Doubt
from loadtest.workloads.imports import Imports

WORKERS = 2  # processes
LANES = 4
#: seconds after the swarm's end within which the import must finish
PATIENCE = 60.0


@dataclass(frozen=True, kw_only=True)
class ImportingSwarm:
    """The import starts once the first caller of `swarm` is posting."""

    swarm: Swarm

    def __call__(self, case: TrialCase, book: Book) -> Witness:
        """Raises TypeError for any other workload."""
        if not isinstance(case.workload, Imports):
            raise TypeError(f"the workload {case.workload.slug} has no files")
        uploads = [Upload(name, content) for name, content in case.workload.files().items()]
        started: list[ImportRun] = []
        with ExitStack() as stack:
            stack.callback(_abandon, book)  # whatever happens, no later worker may continue this import
            workers = [_started(stack, number) for number in range(1, WORKERS + 1)]
            stack.callback(_abandon, book)  # before they are told to end: they would finish the import first
            folder = self.swarm.keep or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-imports-"))
            )

            def tick(fraction: float) -> None:
                journals = folder.glob(f"*{book.pk}/*{SUFFIX}")
                if not started and any(path.stat().st_size for path in journals):
                    started.append(start_import(book, uploads, workers=LANES, way=case.way))
                self.swarm.tick(fraction)

            seen = replace(self.swarm, keep=folder, tick=tick)(case, book)
            done = bool(started) and _finished(started[0])
            for worker in workers:
                _end(worker, politely=done)
            # the workers have ended: nothing writes to the book any more
            imported = history_of(book)
        calls = sorted([*seen.history.calls, *imported.calls], key=lambda call: call.started)
        return replace(
            seen,
            history=CallHistory(calls),
            unfinished=seen.unfinished + imported.counts()["unanswered"],
            doubts=(*seen.doubts, *_doubts(started, done, imported)),
            facts={**seen.facts, "imported": imported.counts()},
        )


def _abandon(book: Book) -> None:
    for run in ImportRun.objects.filter(book=book, finished=None):
        stop(run)


def _started(stack: ExitStack, number: int) -> BackgroundWorker:
    worker = BackgroundWorker(number=number)
    stack.callback(_close, worker)
    return worker.start()


def _close(worker: BackgroundWorker) -> None:
    """End a worker, whatever ended the trial. One that is told so while its listener connects may never end: Python
    3.11's wait_for loses a cancellation that comes together with what it waits for."""
    with suppress(ServerError):  # it has been killed
        worker.close()


def _end(worker: BackgroundWorker, *, politely: bool) -> None:
    """End a worker. One that hangs on a lock is killed; its current line stays unanswered in the rows."""
    if not politely:
        worker.kill()
        return
    with suppress(ServerError):  # it did not stop, and has been killed
        worker.stop()


def _finished(run: ImportRun) -> bool:
    """Wait for the import's end, but not for ever."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        run.refresh_from_db()
        if run.finished:
            return True
        time.sleep(0.05)
    return False


def _doubts(started: list[ImportRun], done: bool, imported: CallHistory) -> list[Doubt]:
    if not started:
        return [Doubt("the import never began: no caller was seen to post", "more time for the swarm")]
    if not done:
        return [Doubt(f"the import had not finished {PATIENCE:g} s after the swarm", "fewer lines")]
    if not imported.counts()["ok"]:
        return [Doubt("no line of the import was posted", "see its page in the admin")]
    return []
