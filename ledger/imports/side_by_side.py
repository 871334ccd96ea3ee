"""A bulk load by several sessions at once: the lines of different accounts need not wait for each other.

    the whole load: accounts → groups, as they come (dealing.py) → chunks; is a key there twice?
    each session:   (a chunk of its group: post_lines, one transaction, commits when no key is there twice) …

One session is one process of PostgreSQL, and so one core's work. Here the accounts are dealt out to groups. All lines
of an account are in one group, and keep their order; a session of its own posts each group, chunk by chunk.

Guarantees   what post_lines guarantees, for each chunk: it is applied as a whole or refused as a whole. The load is not
             one transaction: some chunks of it may be applied, and others not. A group ends at its first chunk that is
             not applied, the other groups go on. Incomplete tells what came of it. The same load once more posts what
             is missing, by the keys.
Breaks when  no money is at risk. Sessions of one load cannot wait for each other in a circle: they share no account,
             and no key, for a key that comes twice refuses the load before its first commit: the keys are looked at
             while the sessions begin, and sessions that wait for each other's key by then are ended. Another program
             can be part of a circle: the database ends it, and the chunk that it rolled back is Busy.
             After Ctrl-C the chunks under way are rolled back, unless they were committing; those before stay.
Costs        a connection for each session, opened for the load and closed at its end, also after an error and Ctrl-C.
             As many sessions as the server has cores is enough; the client's Python is one core's work for all of them.
Source       PostgreSQL, "Populating a Database" (COPY); "Deadlocks".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import psycopg
from django.db import DatabaseError, connection, connections, transaction

from ledger.imports.dealing import BulkLine, Deal
from ledger.imports.set_based import Posted, post_distinct
from ledger.imports.turns import short_turns
from ledger.models import Book
from ledger.posting import Busy
from ledger.stores import KeyTaken
from ledger.strategies.sql import START_AGAIN, code_of

__all__ = ["Incomplete", "load_lines"]

SESSIONS = 2
#: lines of a transaction: enough that its commit costs little, few enough that its accounts are soon free for others
CHUNK = 150_000
KEY = itemgetter(0)  # of a BulkLine
#: of a group's first chunk: its session begins while the rest is dealt out
FIRST = 10_000
PAUSE = 0.05  # seconds until a session that has not ended is told again


class Incomplete(Exception):
    """At least one chunk is not applied; others are, or may be. `done`: the lines that are in the books, and those that
    were there before. `causes`: what ended each of the groups that did not come to their end.

    After Refused, KeyReused, KeyTaken and Busy the chunk is certainly not applied. After any other cause it may be (the
    connection broke during the commit), and is not counted in `done`. Load the same lines once more, without those that
    are refused: what is there by then is left out.
    """

    def __init__(self, done: Posted, causes: Sequence[Exception]) -> None:
        super().__init__(
            f"{done.posted:,} lines posted, {done.known:,} known before; groups that stopped: {len(causes)},"
            f" the first at: {causes[0]}"
        )
        self.done, self.causes = done, tuple(causes)


class Ended(Exception):
    """The load ended while this chunk was under way: the chunk is rolled back."""


class Session(Thread):
    """Posts the chunks of one group, in their order, on a connection of its own, until None or the first error.

    It commits none before `looked`: by then `over` says whether the load is refused.
    """

    def __init__(self, book: Book, name: str, looked: Event) -> None:
        super().__init__(name=name, daemon=True)
        self.book = book
        self.looked = looked
        self.chunks: SimpleQueue[Sequence[BulkLine] | None] = SimpleQueue()
        self.posted = self.known = 0
        self.cause: Exception | None = None
        self.over = False
        #: waited for instead of join(): after a join() that Ctrl-C interrupts, CPython 3.11 takes a thread that runs
        #: for one that has ended
        self.ended = Event()
        self._raw: Any = None

    def run(self) -> None:
        try:
            connection.ensure_connection()
            self._raw = connection.connection
            for chunk in iter(self.chunks.get, None):
                if self.over:
                    break
                self._post(chunk)
        except Exception as error:  # noqa: BLE001  whatever it is, the caller hears it
            self.cause = error
        finally:
            connections.close_all()
            self.ended.set()

    def _post(self, chunk: Sequence[BulkLine]) -> None:
        try:
            done = post_distinct(self.book, chunk, self._may_commit)
        except DatabaseError as error:
            if code_of(error) in START_AGAIN:
                raise Busy(f"another program and this load waited for each other: {error}") from error
            raise
        self.posted += done.posted
        self.known += done.known

    def _may_commit(self) -> None:
        self.looked.wait()
        if self.over:
            raise Ended

    def end(self) -> None:
        """Roll back the chunk that is under way, and wait until the connection is closed. `over` is set already."""
        self.chunks.put(None)
        while self.is_alive() and not self.ended.wait(PAUSE):
            if self._raw is not None:  # told again: it may have been between two statements
                with suppress(psycopg.Error):
                    self._raw.cancel_safe(timeout=1)
        if self.is_alive():
            self.join()


def load_lines(
    book: Book, lines: Sequence[BulkLine], *, sessions: int = SESSIONS, chunk: int = CHUNK
) -> Posted:
    """Post `lines` by several sessions; `chunk`: how many lines of a group are one transaction, at most.

    The book must be one that post_lines can post to, and the caller in no transaction: it could hold what a session
    waits for. Raises KeyTaken (a key twice in the load): nothing is applied then. Raises Incomplete if a chunk is not
    applied. Raises ValueError: less than one session, or than one line.
    """
    if sessions < 1 or chunk < 1:
        raise ValueError(f"{sessions} sessions, chunks of {chunk} lines: at least one of each")
    if connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "a load has sessions of its own: it cannot be in a transaction"
        )
    with short_turns():
        crew = _posted(book, lines, sessions, chunk)
    done = Posted(sum(session.posted for session in crew), sum(session.known for session in crew))
    if causes := [session.cause for session in crew if session.cause]:
        raise Incomplete(done, causes) from causes[0]
    return done


def _posted(book: Book, lines: Sequence[BulkLine], sessions: int, chunk: int) -> list[Session]:
    """Return the sessions that have posted them, at their end. Raises KeyTaken."""
    looked = Event()
    crew = [Session(book, f"load-{place}", looked) for place in range(sessions)]
    try:
        for session in crew:
            session.start()  # they connect meanwhile
        for place, some in _chunks(lines, sessions, chunk):
            crew[place].chunks.put(some)
        for session in crew:
            session.chunks.put(None)
        if len(set(map(KEY, lines))) < len(lines):
            raise KeyTaken("a key comes twice in the load")
        looked.set()
        for session in crew:
            session.ended.wait()
    finally:
        for session in crew:
            session.over = True
        looked.set()  # not before: who waits for it is to see that the load is over
        for session in crew:
            session.end()
    return crew


def _chunks(lines: Sequence[BulkLine], groups: int, size: int) -> Iterator[tuple[int, list[BulkLine]]]:
    """Yield a group and at most `size` of its lines, in the order of the load, so that all groups soon have work: what
    a group has beyond that waits for its next chunk."""
    deal, start, end = Deal(groups), 0, min(FIRST, size) * groups
    rest: list[list[BulkLine]] = [[] for _ in range(groups)]
    while start < len(lines):
        least = size if start and end < len(lines) else 1  # the first chunks and the last ones may be short
        for place, share in enumerate(deal.shares(lines[start:end])):
            rest[place] += share
            while len(rest[place]) >= least:
                yield place, rest[place][:size]
                rest[place] = rest[place][size:]
        start, end = end, end + size * groups
