"""Many lines at once: the set-based import beside Django's bulk_create, and reconcile of the imported book."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import uuid4

from django.db import connection, connections, transaction
from django.utils import timezone

from ledger.imports.dealing import BulkLine, Deal
from ledger.imports.set_based import locked, post_lines, write_accounts
from ledger.imports.side_by_side import load_lines
from ledger.imports.stream import COPY, stream
from ledger.models import Account, Book, Entry
from ledger.models.sequence import blocks
from ledger.posting import Line, Posting, worker
from ledger.reconcile_stored import books_of
from loadtest.bench import reconcile_alone
from loadtest.bench.children import ChildFailed
from loadtest.bench.measured import Row, failed, ratios, spread
from loadtest.bench.strategies.callers import fresh_book, held
from loadtest.bench.strategies.databases import Turn, settle

ACCOUNTS = 100
#: a session keeps one core of the server busy, and the client works beside them
SESSIONS = max(2, min(4, os.cpu_count() or 2))
#: bulk_create posts this many times fewer lines: for all of them it takes a minute, and its rate does not depend on it
SHARE = 10
SET_BASED, ONE_SESSION, BULK_CREATE = "set-based import", "set-based import, 1 session", "bulk_create"
READY_ROWS, READY_SIDE_BY_SIDE = "COPY of ready rows", f"COPY of ready rows, {SESSIONS} sessions"


#: load → the same rows by as many sessions, without any work: no load can be faster
LIMITS = {SET_BASED: READY_SIDE_BY_SIDE, ONE_SESSION: READY_ROWS}


def lines(count: int, first: int = 0) -> list[BulkLine]:
    return [BulkLine(f"line-{n:09}", f"A{n % ACCOUNTS}", n % 7 + 1) for n in range(first, first + count)]


def by_bulk_create(book: Book, given: list[BulkLine]) -> None:
    """Write the same entries as Django's documentation suggests: objects, bulk_create, bulk_update."""
    with transaction.atomic():
        rows = {
            row.number: row
            for row in Account.objects.select_for_update().filter(book=book).order_by("number")
        }
        made, now, me = [], timezone.now(), worker()
        for key, number, amount in given:
            row = rows[number]
            before, row.balance = row.balance, row.balance + amount
            entry = Entry(
                id=uuid4(),
                book_id=book.pk,
                account_id=row.pk,
                key=key,
                fingerprint=Posting(key, (Line(number, amount),)).fingerprint,
                amount=amount,
                balance_before=before,
                balance_after=row.balance,
                parent=row.head,
                worker=me,
                read_at=now,
                written_at=now,
            )
            row.head, row.version = entry.id, row.version + 1
            made.append(entry)
        Entry.objects.bulk_create(made, batch_size=5000)
        Account.objects.bulk_update(rows.values(), ["balance", "version", "head"])


def of_ready_rows(sessions: int, book: Book, given: list[BulkLine]) -> Callable[[], Any]:
    """Return the limit: the same entries, computed beforehand, into the same table, by as many sessions, without any
    checks."""
    ready = [_ready(book, share) for share in Deal(sessions).shares(given)]
    if sessions == 1:
        return ready[0]

    def in_a_session(copy_rows: Callable[[], None]) -> None:
        try:
            copy_rows()
        finally:
            connections.close_all()

    def side_by_side() -> None:
        with ThreadPoolExecutor(sessions) as threads:
            list(threads.map(in_a_session, ready))

    return side_by_side


def _ready(book: Book, given: list[BulkLine]) -> Callable[[], None]:
    """Return a function that writes the entries, and the accounts in the same commit, so an aborted run leaves no entry
    that its account does not know."""
    accounts = locked(book, {line.account for line in given})
    with connection.cursor() as cursor:
        rows = list(stream(book, accounts, given, blocks(cursor, len(given))))

    def copy_rows() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            with cursor.copy(COPY) as copy:
                for some in rows:
                    copy.write(some)
            write_accounts(cursor, accounts.values())

    return copy_rows


#: the work before the clock starts; it returns the timed work
Way = Callable[[Book, list[BulkLine]], Callable[[], Any]]
WAYS: dict[str, Way] = {
    SET_BASED: lambda book, given: partial(load_lines, book, given, sessions=SESSIONS),
    ONE_SESSION: lambda book, given: partial(post_lines, book, given),
    BULK_CREATE: lambda book, given: partial(by_bulk_create, book, given),
    READY_ROWS: partial(of_ready_rows, 1),
    READY_SIDE_BY_SIDE: partial(of_ready_rows, SESSIONS),
}


def warm_up(count: int) -> None:
    """Load once before the clock starts: a new server creates each WAL segment, 16 MiB of zeros, while the load waits.
    After a checkpoint it reuses the old segments."""
    load_lines(fresh_book("select-for-update", ACCOUNTS), lines(count), sessions=SESSIONS)


def one(way: Way, count: int) -> tuple[float, bool]:
    """Return the lines per second until the commit, and whether the book balances and holds the sum of the lines."""
    book, given = fresh_book("select-for-update", ACCOUNTS), lines(count)
    with transaction.atomic():
        timed = way(book, given)
    settle()
    started = time.perf_counter()
    timed()
    speed = count / (time.perf_counter() - started)
    return speed, held(book) == sum(line.amount for line in given) and books_of(book).right


def imports(turn: Turn, rounds: int, count: int, told: Callable[[str], None]) -> Iterator[Row]:
    """Yield a row for each way. The ways take turns, each on tables of its own. `of_limit`: the rate divided by that
    of a COPY of ready rows by as many sessions."""
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    counts = dict.fromkeys(WAYS, count) | {BULK_CREATE: max(1, count // SHARE)}
    right = dict.fromkeys(WAYS, True)
    told(f"{SET_BASED}: {count:,} lines, before the clock starts")
    with turn():
        warm_up(count)
    for place in range(1, rounds + 1):
        for name, way in WAYS.items():
            told(f"{name}: {counts[name]:,} lines, round {place} of {rounds}")
            with turn():
                speed, is_right = one(way, counts[name])
            found[name].append(speed)
            right[name] &= is_right
    for name, speeds in found.items():
        about = {"measure": "import", "strategy": name, "accounts": ACCOUNTS, "lines": counts[name]}
        yield {
            **about,
            "per_s": spread(speeds),
            "ratio": ratios(speeds, found[BULK_CREATE]),
            **({"of_limit": ratios(speeds, found[LIMITS[name]])} if name in LIMITS else {}),
            "right": right[name],
        }


def reconciles(counts: tuple[int, ...], chunk: int, told: Callable[[str], None]) -> Iterator[Row]:
    """Yield a row for each of `counts` (ascending): one growing book, reconciled in a process of its own."""
    book, there = fresh_book("select-for-update", ACCOUNTS), 0
    for count in counts:
        while there < count:
            told(f"reconcile: {there:,} of {count:,} entries imported")
            there += post_lines(book, lines(min(chunk, count - there), there)).posted
        told(f"reconcile of {count:,} entries")
        about = {"measure": "reconcile", "strategy": "reconcile", "accounts": ACCOUNTS, "entries": count}
        try:
            yield about | reconcile_alone.measure(book.pk)
        except ChildFailed as error:
            yield about | failed(error)
