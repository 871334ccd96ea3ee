"""worker-crash: SIGKILL of a background worker in the middle of a batch import; another worker takes over the batch.

    worker A   claims the chunk (lease) …… lines 1, 2, 3 posted …… inside line 4 ╳
    worker B                                                          (lease over) claims it …… the lines that are left

The queue does not return the killed worker's job in time. The batch continues from its own rows, and a line's key makes
sure that it is posted only once, whichever worker posts it.

Proof        the worker was inside a line when it was killed; how many lines were posted by then.
Cannot touch balances outside PostgreSQL (the import's rows are there; the same crash of a worker is `crash-holding`).
Cleans up    the import's rows stay with the book.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ledger.imports.operations import asked
from ledger.imports.upload import Upload, start_import
from ledger.models import ImportLine
from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.workers.crew import Dead
from loadtest.history.journal import Journal
from loadtest.trials import dependencies
from loadtest.verdict.evidence import Stall
from locks.hazards import Hazard

if TYPE_CHECKING:
    from ledger.models import Book
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.workers.crew import CrewWorker

LINES, DIES_AT = 8, 4
LEASE = 1.0  # of the chunk, seconds


class WorkerCrash(Adversary):
    slug = "worker-crash"
    lasts = 14.0
    word = Hazard.WORKER_CRASH

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_postgres(store)

    def strike(self, scene: Scene) -> None:
        run = start_import(scene.book, [self.file(scene)], workers=1, scan=False)
        if why := refusal(scene.book):
            scene.cannot = why
            return
        first, second = scene.hire(), scene.hire()
        scene.struck.update((first, second))
        first.begins("call", "import_chunk", run.pk, 1, DIES_AT, LEASE)
        if not stands_inside(first):
            scene.note(f"worker {first.pid} did not get inside a line: {first.answer}")
            if first.busy:
                first.tells("go")
            self.end(scene)
            return
        held = scene.held(first)
        first.die()
        scene.fault(f"SIGKILL of worker {first.pid}")
        posted = sum(1 for each in asked(scene.book) if entry_of(scene.book, each.key))
        scene.prove(
            f"SIGKILL of worker {first.pid} inside line {DIES_AT} of {LINES}, {posted} in the books; {held}"
        )
        self.go_on(scene, second, run.pk)
        self.end(scene)

    def file(self, scene: Scene) -> Upload:
        sign = -1 if scene.withdraws else 1
        lines = [
            f"acme,A0001,{sign * scene.chance.randint(1, 9999)},{scene.book.pk}-{n}" for n in range(LINES)
        ]
        return Upload("acme.csv", "\n".join(["seller,account,amount,reference", *lines, ""]).encode())

    def go_on(self, scene: Scene, worker: CrewWorker, run: int) -> None:
        """Let the other worker ask for work until none is left, as a sweeper does."""
        begin = time.monotonic()
        until = begin + LEASE + scene.enough
        while waiting(scene.book) and time.monotonic() < until:
            worker.begins("call", "import_chunk", run, 1, 0, LEASE)
            if not worker.finishes(until):
                return
            time.sleep(0.1)
        if waiting(scene.book):
            told = "lines of the import wait, and no worker processes them"
            scene.stall = Stall(told, time.monotonic() - begin)

    def end(self, scene: Scene) -> None:
        """Write the journal of the lines. The answer to each line is what the import reports about it."""
        journal = Journal(scene.folder)
        for each in asked(scene.book):
            journal.invoke(each.key, each.legs.items(), each.worker or "nobody")
            journal.complete(each.key, each.outcome, error=each.problem, busy=each.state == "busy")
        journal.close()


def stands_inside(worker: CrewWorker) -> bool:
    with suppress(Dead):
        heard = worker.hears(8)
        return bool(heard and heard[0] == "inside")
    return False


def refusal(book: Book) -> str:
    """Return why the import accepts none of its lines; "" if it does."""
    if waiting(book):
        return ""
    line = ImportLine.objects.filter(book=book).first()
    return f"the import accepts no line of such a book: {line.problem}" if line else "the import has no lines"


def waiting(book: Book) -> bool:
    return any(each.state == "waiting" for each in asked(book))


def entry_of(book: Book, key: str) -> bool:
    from ledger.stores import store_of

    return store_of(book).find(key) is not None
