"""A strategy as a subject of the explorer: each worker calls `apply` once; the trial's own laws say what it came to."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import redis
from django.db import connection

from ledger.books import open_book
from ledger.lock_tables import LOCK_TABLES
from ledger.lock_tables.centre_lock import CentreLock
from ledger.models import Book, LockRecord
from ledger.posting import Busy, Line, Posting, Refused
from ledger.reconcile import Books, Operation, Outcome
from ledger.strategies import find
from ledger.strategies.own_row import OwnRows
from loadtest.explorer.clients import OwnClients
from loadtest.explorer.remembered import Remembered
from loadtest.explorer.restore import Opening, empty
from loadtest.explorer.workloads import Workload
from loadtest.verdict.laws import Breach, books_law, floor_law
from loadtest.verdict.words import Word
from locks.fair_lock import client
from locks.renewal_service import RenewalServiceLock
from lost_update_lab.gates.clocks import EPOCH
from lost_update_lab.model.subject import UNBROKEN, Ending, Judgement
from lost_update_lab.servers.postgres.server import NAME as POSTGRES

DEADLOCK = "40P01"
REDIS = "redis"  # the server of that name; the others are the nodes of a Redlock


class LedgerSubject:
    """One strategy on one workload. `settings`: those of the book, in seconds."""

    def __init__(
        self,
        strategy: str,
        workload: Workload,
        store: str,
        settings: dict[str, Any],
        nodes: Mapping[str, redis.Redis],
        clients: OwnClients,
    ) -> None:
        self.name, self.workload, self.clients = strategy, workload, clients
        accounts = ((each.account, each.opening, each.floor) for each in workload.openings)
        empty(connection, nodes)  # the subject before this one has left its last schedule there
        self.book: Book = open_book(
            strategy, accounts, store=store, name="exploration", values=settings, trusted=True
        )
        self._central_rows()
        self.opening = Opening(connection, nodes)
        #: the most operations that one schedule acknowledged: without any, nothing was tried
        self.acknowledged = 0
        self._own = threading.local()
        self._judged: dict[Any, Judgement] = {}
        self._books: dict[Any, Books] = {}
        #: by what the store that keeps the accounts held
        self._remembered: dict[bytes, Remembered] = {}

    def _central_rows(self) -> None:
        """Those of the migration that this strategy's locks will look for: each one more would be looked at in each
        state."""
        table = LOCK_TABLES.get(self.name)
        if table and issubclass(table, CentreLock):
            names = {table(f"{self.book.pk}:{each.account}").centre for each in self.workload.openings}
            LockRecord.objects.bulk_create(LockRecord(name=name) for name in sorted(names))

    def reset(self, changed: Collection[str]) -> None:
        RenewalServiceLock._services.clear()  # each run's workers are processes that have just begun
        client.start_anew()
        OwnRows.forget()
        self.opening.restore(changed)

    def posting(self, index: int) -> Posting:
        legs = self.workload.legs(index)
        return Posting(
            f"worker-{chr(ord('A') + index)}", tuple(Line(account, amount) for account, amount in legs)
        )

    def work(self, index: int) -> Any:
        # names of savepoints are counted, and this worker's process has just begun
        connection.savepoint_state = 0
        return find(self.book.strategy)(self.book).apply(self.posting(index))

    def settle(self, index: int) -> None:
        """Runs in the worker's thread: a block that was left halfway, or a lost connection, is no more."""
        connection.in_atomic_block = connection.needs_rollback = connection.closed_in_transaction = False
        connection.savepoint_ids, connection.atomic_blocks, connection.run_on_commit = [], [], []
        if connection.connection is None or connection.connection.closed:
            connection.connection = getattr(self._own, "connection", None)
        connection.ensure_connection()
        self._own.connection = connection.connection
        if not connection.get_autocommit():
            connection.set_autocommit(True)

    def leave(self, index: int) -> None:
        connection.close()
        self.clients.close(index)

    # -- what one schedule came to -------------------------------------------------------------------------------------

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        return self._accounts_in(contents) in self._remembered

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        """The same books and the same answers come to the same: it is worked out once."""
        accounts = self._accounts_in(contents)
        key = (
            accounts,
            stuck,
            tuple((*self._outcome(e), e.struck, e.waiting, e.alone, _sqlstate(e)) for e in endings),
        )
        if key not in self._judged:
            self._judged[key] = self._judge(endings, stuck, self._books_of(endings, accounts))
        return self._judged[key]

    def _accounts_in(self, contents: Mapping[str, bytes]) -> bytes:
        return contents[REDIS if self.book.store == "redis" else POSTGRES]

    def _books_of(self, endings: Sequence[Ending], accounts: bytes) -> Books:
        """For the books it does not matter who was struck, or why somebody was refused."""
        if accounts not in self._remembered:
            self._remembered[accounts] = Remembered.of(self.book)
        key = accounts, tuple(self._outcome(each)[0] for each in endings)
        if key not in self._books:
            self._books[key] = self._remembered[accounts].books(self._operations(endings))
        return self._books[key]

    def _judge(self, endings: Sequence[Ending], stuck: bool, books: Books) -> Judgement:
        self.acknowledged = max(self.acknowledged, books.acknowledged_operations)
        floors = {each.account: each.floor for each in self.workload.openings if each.floor is not None}
        breaches = [*books_law(books), *floor_law(books, floors), *self._stalls(endings, stuck)]
        if breaches:
            breaches.sort(key=lambda breach: breach.word.gravity)
            return Judgement(str(breaches[0].word), tuple(breach.sentence for breach in breaches))
        surprised = [e for e in endings if e.error is not None and not e.struck and not _expected(e.error)]
        if surprised:
            told = "; ".join(f"{e.worker} raised {type(e.error).__name__}: {e.error}" for e in surprised)
            return Judgement(str(Word.INCONCLUSIVE), (f"with no fault of its own {told}",))
        if why := _unsettled(books):
            return Judgement(str(Word.INCONCLUSIVE), (why,))
        if refused := [e.worker for e in endings if isinstance(e.error, Busy) and not e.struck]:
            return Judgement(
                str(Word.REFUSED), (f"{', '.join(refused)} was refused: {refused_why(endings)}",)
            )
        return Judgement(UNBROKEN)

    def _operations(self, endings: Sequence[Ending]) -> dict[str, list[Operation]]:
        found: dict[str, list[Operation]] = {}
        for index, ending in enumerate(endings):
            for account, amount in self.workload.legs(index):
                operation = Operation(
                    self.posting(index).key, amount, self._outcome(ending)[0], EPOCH, EPOCH + 1, ending.worker
                )
                found.setdefault(account, []).append(operation)
        return found

    def _outcome(self, ending: Ending) -> tuple[Outcome, str]:
        if ending.crashed or ending.waiting:
            return Outcome.INFO, ""
        if ending.error is None:
            return Outcome.OK, ""
        if isinstance(ending.error, Refused | Busy):
            return Outcome.FAIL, type(ending.error).__name__
        return Outcome.INFO, type(ending.error).__name__

    def _stalls(self, endings: Sequence[Ending], stuck: bool) -> list[Breach]:
        found = []
        if stuck:
            waiting = ", ".join(e.worker for e in endings if e.waiting)
            found.append(f"{waiting} can never go on: whatever it waits for will not come")
        for ending in endings:
            if isinstance(ending.error, Busy) and ending.alone and not ending.struck:
                found.append(f"{ending.worker} gave up ({ending.error}) though no live worker was inside")
            elif _sqlstate(ending) == DEADLOCK:
                found.append(f"{ending.worker} was aborted by the database: deadlock")
        return [Breach(Word.STALLED, sentence) for sentence in found]

    def show(self) -> dict[str, Any]:
        return self.opening.shown(self.book)


def _unsettled(books: Books) -> str:
    """Why these books prove nothing, though no law is broken; "": they are settled."""
    if not books.balanced:
        return books.problems[0] if books.problems else "the books do not balance"
    if books.drift:
        return f"an unexplained drift of {books.drift:+}"
    return "money is in the books that no worker was asked to post" if books.unreported else ""


def _expected(error: BaseException) -> bool:
    """Is it an answer that a caller knows what to do with?"""
    return isinstance(error, Refused | Busy)


def _sqlstate(ending: Ending) -> str:
    """The database's own word for why the worker failed."""
    return getattr(ending.error.__cause__ if ending.error else None, "sqlstate", None) or ""


def refused_why(endings: Sequence[Ending]) -> str:
    return "; ".join(str(e.error) for e in endings if isinstance(e.error, Busy))
