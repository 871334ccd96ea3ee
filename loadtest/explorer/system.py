"""A strategy as the explorer's system under test: each worker calls `apply` once, and the schedule is judged."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection

from ledger.books import open_book
from ledger.lock_tables import LOCK_TABLES
from ledger.lock_tables.centre_lock import CentreLock
from ledger.models import Book, LockRecord
from ledger.posting import Busy, Line, Posting, Refused
from ledger.reconcile import Books, ClientOperation, ClientOutcome
from ledger.stores.sql import ALIASES
from ledger.strategies import find
from ledger.strategies.sql import LOCKED, code_of
from loadtest.explorer.clients import OwnClients
from loadtest.explorer.remembered import Remembered
from loadtest.explorer.restore import (
    REDIS_SERVER,
    empty,
    empty_mariadb,
    entries,
    postgres_snapshot,
    shown,
    shown_on_mariadb,
)
from loadtest.findings.explored import MISTAKE
from loadtest.findings.job import Job
from loadtest.history.observed import Observed
from loadtest.verdict.evidence import Doubt, Evidence
from loadtest.verdict.judge import judge_run
from loadtest.verdict.laws import Breach, floor_law
from loadtest.verdict.words import Word
from loadtest.workloads import Turns
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.system import UNBROKEN, Ending, Judgement, trace_of
from lost_update_lab.servers.mariadb.server import MARIADB
from lost_update_lab.servers.postgres.server import POSTGRES
from lost_update_lab.snapshot.postgres import PostgresSnapshot
from lost_update_lab.snapshot.redis import RedisSnapshot
from lost_update_lab.under_test.django_project import DjangoProject
from lost_update_lab.under_test.operations import Operations
from lost_update_lab.under_test.scenario import Scenario, worker
from lost_update_lab.under_test.servers import Servers

#: files of Python, of the clients and of the lab
_NOT_THEIRS = re.compile(r"/(?:contextlib\.py|redis/|psycopg/|django/|ledger/|loadtest/|lost_update_lab/)")
DEADLOCK = {"40P01", 1213}


class LedgerSystem(Operations):
    """One strategy on one workload, as a scenario of the library: its operations are postings, and the books are judged
    by the tree of their entries. `settings`: settings of the book, in seconds."""

    database: PostgresSnapshot
    words = tuple(map(str, (*(word for word in Word if word.is_breach), Word.INCONCLUSIVE)))

    def __init__(
        self,
        job: Job,
        turns: Turns,
        settings: dict[str, Any],
        addresses: Mapping[str, str],
    ) -> None:
        self.turns, project, clients = turns, DjangoProject(), OwnClients()
        self.book = self._opened(job, settings, addresses)
        snapshots = {name: RedisSnapshot(url) for name, url in addresses.items()}
        super().__init__(
            Scenario(
                name=job.strategy,
                workers=tuple(
                    worker(each, self.apply, n) for n, each in enumerate("ABCDEFGH"[: job.workers])
                ),
            ),
            Servers(os.environ["DATABASE_URL"], addresses[REDIS_SERVER]),
            postgres_snapshot(),
            snapshots.pop(REDIS_SERVER),
            (project, clients),
        )
        self.patches = project.install, clients.install
        #: of a Redlock
        self.nodes = snapshots
        #: the most operations acknowledged in one schedule; 0: nothing was tried
        self.acknowledged = 0
        self._verdicts: dict[Any, Judgement] = {}
        self._books: dict[Any, Books] = {}
        #: contents of the accounts' store → the books read from it
        self._remembered: dict[bytes, Remembered] = {}

    def _opened(self, job: Job, settings: dict[str, Any], addresses: Mapping[str, str]) -> Book:
        """The book, on servers that hold nothing else: the previous job left its last schedule there."""
        if job.where == MARIADB:
            empty_mariadb()
        empty(connection, addresses.values())
        accounts = [(each.account, each.opening, each.floor) for each in self.turns.openings]
        book = open_book(
            job.strategy, accounts, store=job.where, name="exploration", values=settings, trusted=True
        )
        table = LOCK_TABLES.get(job.strategy)
        if table and issubclass(table, CentreLock):  # any other row would be part of every state
            names = {table(f"{book.pk}:{account}").centre for account, _, _ in accounts}
            LockRecord.objects.using(ALIASES.get(book.store, DEFAULT_DB_ALIAS)).bulk_create(
                LockRecord(name=name) for name in sorted(names)
            )
        return book

    def reset(self, changed: Collection[str]) -> None:
        super().reset(changed)
        for name in self.nodes.keys() & set(changed):
            self.nodes[name].restore()

    def posting(self, index: int) -> Posting:
        legs = self.turns.legs(index)
        return Posting(
            f"worker-{chr(ord('A') + index)}", tuple(Line(account, amount) for account, amount in legs)
        )

    def apply(self, index: int) -> None:
        """The operation. What it returns is no part of a state: an acknowledgement is one."""
        find(self.book.strategy)(self.book).apply(self.posting(index))

    def close(self) -> None:
        self.database.close()
        for each in (self.keys, *self.nodes.values()):
            if each:
                each.close()

    # -- judging one schedule -----------------------------------------------------------------------------------------

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        return self._accounts_in(contents) in self._remembered

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        """Judge a schedule. Equal books with equal answers are judged once."""
        accounts = self._accounts_in(contents)
        key = (
            accounts,
            stuck,
            tuple((*self._outcome(e), e.struck, e.waiting, e.alone, _is_deadlock(e.error)) for e in endings),
        )
        if key not in self._verdicts:
            self._verdicts[key] = self._judge(endings, stuck, self._books_of(endings, accounts))
        return self._verdicts[key]

    def _accounts_in(self, contents: Mapping[str, bytes]) -> bytes:
        return contents[{"redis": REDIS_SERVER, MARIADB: MARIADB}.get(self.book.store, POSTGRES)]

    def _books_of(self, endings: Sequence[Ending], accounts: bytes) -> Books:
        """Return the books for these outcomes. Which worker a fault struck, or why one was refused, does not matter."""
        if accounts not in self._remembered:
            self._remembered[accounts] = Remembered.of(self.book)
        key = accounts, tuple(self._outcome(each)[0] for each in endings)
        if key not in self._books:
            self._books[key] = self._remembered[accounts].books(self._operations(endings))
        return self._books[key]

    def _judge(self, endings: Sequence[Ending], stuck: bool, books: Books) -> Judgement:
        verdict = judge_run(self._evidence(endings, stuck, books))
        if verdict is None:
            return Judgement(UNBROKEN)
        if verdict.word is Word.REFUSED:
            return Judgement(str(verdict.word), (verdict.cause,))
        # a refusal at the same time is not why the law is broken
        laws = [each.sentence for each in verdict.breaches if each.word is not Word.REFUSED]
        told = tuple(laws or (each.cause for each in verdict.doubts))
        return Judgement(str(verdict.word), told, "" if laws else _traced(_surprised(endings)))

    def _evidence(self, endings: Sequence[Ending], stuck: bool, books: Books) -> Evidence:
        self.acknowledged = max(self.acknowledged, books.acknowledged_operations)
        floors = {each.account: each.floor for each in self.turns.openings if each.floor is not None}
        surprised = _surprised(endings)
        refused = [e.worker for e in endings if _gave_up(e.error) and not e.struck and not surprised]
        told = "; ".join(f"{e.worker} raised {_told(e.error)}" for e in surprised if e.error)
        return Evidence(
            books=books,
            observed=Observed(acknowledged=books.acknowledged_operations),
            breaches=(*floor_law(books, floors), *self._stalls(endings, stuck)),
            unavailable=f"{', '.join(refused)} was refused: {refused_why(endings)}" if refused else "",
            doubts=(Doubt(f"with no fault of its own {told}", MISTAKE),) if surprised else (),
        )

    def _operations(self, endings: Sequence[Ending]) -> dict[str, list[ClientOperation]]:
        found: dict[str, list[ClientOperation]] = {}
        began = Epoch.shows
        for index, ending in enumerate(endings):
            for account, amount in self.turns.legs(index):
                operation = ClientOperation(
                    self.posting(index).key, amount, self._outcome(ending)[0], began, began + 1, ending.worker
                )
                found.setdefault(account, []).append(operation)
        return found

    def _outcome(self, ending: Ending) -> tuple[ClientOutcome, str]:
        if ending.crashed or ending.waiting:
            return ClientOutcome.INFO, ""
        if ending.error is None:
            return ClientOutcome.OK, ""
        if isinstance(ending.error, Refused) or _gave_up(ending.error):
            return ClientOutcome.FAIL, type(ending.error).__name__
        return ClientOutcome.INFO, type(ending.error).__name__

    def _stalls(self, endings: Sequence[Ending], stuck: bool) -> list[Breach]:
        found = []
        if stuck:
            waiting = ", ".join(e.worker for e in endings if e.waiting)
            found.append(f"{waiting} can never go on: whatever it waits for will not come")
        for ending in endings:
            if isinstance(ending.error, Busy) and ending.alone and not ending.struck:
                found.append(f"{ending.worker} gave up ({ending.error}) though no live worker was inside")
            elif _is_deadlock(ending.error):
                found.append(f"{ending.worker} was aborted by the database: deadlock")
        return [Breach(Word.STALLED, sentence) for sentence in found]

    def show(self) -> dict[str, Any]:
        node = self.keys.client if self.keys else None
        return shown_on_mariadb(self.mariadb) if self.mariadb else shown(self.database, node, self.book)

    def entries(self) -> list[dict[str, Any]]:
        """The committed entries: who read what, and wrote what over it."""
        return entries(self.database, self.book)


def _told(error: BaseException) -> str:
    """Return the error and where it was raised: in third-party code outside the clients, if possible."""
    places = [each for each in trace_of(error) if not _NOT_THEIRS.search(each.filename)] or trace_of(error)[
        -1:
    ]
    where = (
        f" ({Path(places[-1].filename).name}, line {places[-1].lineno}, in {places[-1].name})"
        if places
        else ""
    )
    return f"{type(error).__name__}: {error}{where}"


def _surprised(endings: Sequence[Ending]) -> list[Ending]:
    """The workers that ended with an error that is no answer, and that no fault explains."""
    return [each for each in endings if each.error and not each.struck and not _expected(each.error)]


def _traced(endings: Sequence[Ending]) -> str:
    """The errors' tracebacks."""
    return "\n".join(
        f"{each.worker}:\n{''.join(trace_of(each.error).format())}{type(each.error).__name__}: {each.error}"
        for each in endings
        if each.error
    )


def _expected(error: BaseException) -> bool:
    """Is this an answer that a caller can handle?"""
    return isinstance(error, Refused) or _gave_up(error)


def _gave_up(error: BaseException | None) -> bool:
    """Was it not let in: by its lock, or by the database, where it waited too long for a row (ledger/books.py)?"""
    return isinstance(error, Busy) or (isinstance(error, OperationalError) and code_of(error) in LOCKED)


def _is_deadlock(error: BaseException | None) -> bool:
    """Did a database end a deadlock so?"""
    return any(each is not None and code_of(each) in DEADLOCK for each in (error, error and error.__cause__))


def refused_why(endings: Sequence[Ending]) -> str:
    return "; ".join(str(e.error) for e in endings if _gave_up(e.error))
