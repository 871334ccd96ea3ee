"""Worker processes that post to one book with its strategy, as often as they can."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import uuid4

from django.db import connections
from django.db.models import Sum

from ledger.books import open_book
from ledger.models import Account, Book
from ledger.posting import Busy, Line, Posting
from ledger.strategies import find
from ledger.strategies.single_writer import SingleWriter
from loadtest.bench.children import crew

IDLE = {
    "think": [0.0, 0.0],
    "before": [0.0, 0.0],
}  # no business logic between read and write: only the strategy's cost


def fresh_book(strategy: str, accounts: int) -> Book:
    """Open a book with accounts A0, A1, … `strategy` may be a `module:callable`, but only from the command line."""
    numbers = [(f"A{n}", 0, None) for n in range(accounts)]
    return open_book(strategy, numbers, values=IDLE, name=f"bench {strategy}", trusted=True)


def held(book: Book) -> int:
    """Return the sum of the book's balances."""
    return int(Account.objects.filter(book=book).aggregate(held=Sum("balance"))["held"])


def caller(book: Book, accounts: int, window: int = 0) -> Callable[[], Callable[[Any], Any]]:
    """Return the preparation of a caller's process. Its orders are (start, end) by time.monotonic(). Its answers are
    the number of applied postings and the CPU seconds of the process.

    `window`: how many postings are in flight at once (only `single-writer` supports it); 0: one after the other.
    """

    def prepare() -> Callable[[Any], Any]:
        strategy = find(book.strategy)(book)
        me, numbers, draw = uuid4().hex[:12], count(), random.Random()  # noqa: S311  (not a secret)

        def posting() -> Posting:
            return Posting(f"{me}-{next(numbers)}", (Line(f"A{draw.randrange(accounts)}", 1),))

        def once() -> int:
            if not window:
                try:
                    strategy.apply(posting())
                except Busy:  # retries used up: certainly not applied, so not counted
                    return 0
                return 1
            assert isinstance(strategy, SingleWriter)
            answers = strategy.ask([posting() for _ in range(window)])
            return sum(answer.word == "stored" for answer in answers)

        def work(order: tuple[float, float]) -> tuple[int, float]:
            start, end = order
            if time.monotonic() < start:
                time.sleep(start - time.monotonic())
            done, spent, late = 0, time.process_time(), False
            while not late:  # a process that starts late on a busy machine still posts once
                done += once()
                late = time.monotonic() >= end
            return done, time.process_time() - spent

        return work

    return prepare


HEAD_START = 0.15  # seconds, so that all start at the same moment
WARM_UP_SECONDS = (
    1  # second, as for pgbench: connections, plans, and the owner of a book; not longer than the timed part
)


@dataclass(frozen=True)
class Rate:
    """`per_s`: postings per second. `right`: do the balances hold exactly what was acknowledged? `client_us`: µs of CPU
    time that the clients spent per posting."""

    per_s: float
    right: bool
    client_us: float


def rate(strategy: str, *, accounts: int, seconds: float, callers: int, window: int = 0) -> Rate:
    """Let `callers` processes post to a new book for this many seconds."""
    book = fresh_book(strategy, accounts)
    connections.close_all()  # each child would close a connection that it inherits by the fork
    with crew(*[caller(book, accounts, window)] * callers) as processes:
        acknowledged = 0
        for length in (min(WARM_UP_SECONDS, seconds), seconds):
            started = time.monotonic() + HEAD_START
            for process in processes:
                process.tell((started, started + length))
            answers = [process.answer(length) for process in processes]
            done = sum(applied for applied, _ in answers)
            passed = time.monotonic() - started
            acknowledged += done
    spent = sum(seconds for _, seconds in answers)
    return Rate(done / passed, held(book) == acknowledged, 1e6 * spent / max(1, done))
