"""A bulk load with several parallel sessions: the lines of different accounts need not wait for each other.

    the whole load: accounts → groups, as they come (dealing.py) → chunks; is a key there twice?
    each session:   (a chunk of its group: post_lines, one transaction, commits when no key is there twice) …

A session is one process of PostgreSQL and cannot use more than one core. Here the accounts are dealt out to groups. All
lines of an account are in one group and keep their order. Each group has its own session, which posts it in chunks.

Guarantees   what post_lines guarantees, for each chunk: it is applied or refused as a whole. The load is not one
             transaction: some of its chunks may be applied and others not. A group ends at its first chunk that is not
             applied, and the other groups continue. The exception Incomplete describes the outcome. Running the same
             load again posts what is missing, because the keys are known.
Breaks when  no money is at risk. The sessions of one load cannot deadlock: they share no account and no key. A
             duplicate key refuses the load before its first commit. The check runs while the sessions start, and
             sessions that already wait for each other's key are then ended. Another program can be part of a
             deadlock: the database resolves it, and the chunk that is rolled back is Busy.
             After Ctrl-C the chunks under way are rolled back, unless they were committing. Earlier ones stay.
Costs        a connection for each session. It is opened for the load and closed at its end, even after an error or
             Ctrl-C. One session per core of the server is enough. The client's Python uses one core for all of them.
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
#: lines in one transaction: enough to make the commit cheap, few enough to free the accounts soon
CHUNK = 150_000
KEY = itemgetter(0)  # of a BulkLine
#: lines in a group's first chunk: its session starts while the rest is being dealt out
FIRST = 10_000
PAUSE = 0.05  # seconds until a session that has not ended is cancelled again


class Incomplete(Exception):
    """At least one chunk is not applied; others are, or may be.

    `done`: how many lines were posted now, and how many before. `causes`: one error for each group that did not finish.
    After Refused, KeyReused, KeyTaken and Busy the chunk is certainly not applied. After any other cause it may be (the
    connection broke during the commit), and `done` does not count it. Load the same lines again, without the refused
    ones: lines that are already posted are left out.
    """

    def __init__(self, done: Posted, causes: Sequence[Exception]) -> None:
        super().__init__(
            f"{done.posted:,} lines posted, {done.known:,} known before; groups that stopped: {len(causes)},"
            f" the first at: {causes[0]}"
        )
        self.done, self.causes = done, tuple(causes)


class LoadEnded(Exception):
    """The load ended while this chunk was under way, so the chunk is rolled back."""


class ImportSession(Thread):
    """Posts the chunks of one group, in order, on a connection of its own, until None or the first error.

    It commits nothing before `looked` is set. By then `over` says whether the load is refused.
    """

    def __init__(self, book: Book, name: str, looked: Event) -> None:
        super().__init__(name=name, daemon=True)
        self.book = book
        self.looked = looked
        self.chunks: SimpleQueue[Sequence[BulkLine] | None] = SimpleQueue()
        self.posted = self.known = 0
        self.cause: Exception | None = None
        self.over = False
        #: used instead of join(): if Ctrl-C interrupts a join(), CPython 3.11 believes that the running thread has
        #: ended
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
        except Exception as error:  # noqa: BLE001  the caller gets every error
            self.cause = error
        finally:
            connections.close_all()
            self.ended.set()

    def _post(self, chunk: Sequence[BulkLine]) -> None:
        try:
            done = post_distinct(self.book, chunk, self._may_commit)
        except DatabaseError as error:
            if code_of(error) in START_AGAIN:
                raise Busy(f"this load and another program deadlocked: {error}") from error
            raise
        self.posted += done.posted
        self.known += done.known

    def _may_commit(self) -> None:
        self.looked.wait()
        if self.over:
            raise LoadEnded

    def end(self) -> None:
        """Roll back the chunk under way, and wait until the connection is closed. `over` must be set already."""
        self.chunks.put(None)
        while self.is_alive() and not self.ended.wait(PAUSE):
            if self._raw is not None:  # again and again: the session may have been between two statements
                with suppress(psycopg.Error):
                    self._raw.cancel_safe(timeout=1)
        if self.is_alive():
            self.join()


def load_lines(
    book: Book, lines: Sequence[BulkLine], *, sessions: int = SESSIONS, chunk: int = CHUNK
) -> Posted:
    """Post `lines` with several sessions. `chunk`: the maximum number of a group's lines in one transaction.

    post_lines must be able to post to the book. The caller may not be in a transaction, which could hold what a session
    waits for. Raises KeyTaken (a key twice in the load) without having applied anything, Incomplete if a chunk is not
    applied, and ValueError for less than one session or one line.
    """
    if sessions < 1 or chunk < 1:
        raise ValueError(f"{sessions} sessions, chunks of {chunk} lines: at least one of each")
    if connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "a load has sessions of its own and cannot be part of a transaction"
        )
    with short_turns():
        crew = _posted(book, lines, sessions, chunk)
    done = Posted(sum(session.posted for session in crew), sum(session.known for session in crew))
    if causes := [session.cause for session in crew if session.cause]:
        raise Incomplete(done, causes) from causes[0]
    return done


def _posted(book: Book, lines: Sequence[BulkLine], sessions: int, chunk: int) -> list[ImportSession]:
    """Post the lines and return the ended sessions. Raises KeyTaken."""
    looked = Event()
    crew = [ImportSession(book, f"load-{place}", looked) for place in range(sessions)]
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
        looked.set()  # only now: a session that waits for it must see that the load is over
        for session in crew:
            session.end()
    return crew


def _chunks(lines: Sequence[BulkLine], groups: int, size: int) -> Iterator[tuple[int, list[BulkLine]]]:
    """Yield a group and at most `size` of its lines, in the order of the load. All groups soon have work, and a group's
    surplus waits for its next chunk."""
    deal, start, end = Deal(groups), 0, min(FIRST, size) * groups
    rest: list[list[BulkLine]] = [[] for _ in range(groups)]
    while start < len(lines):
        least = size if start and end < len(lines) else 1  # the first and the last chunks may be short
        for place, share in enumerate(deal.shares(lines[start:end])):
            rest[place] += share
            while len(rest[place]) >= least:
                yield place, rest[place][:size]
                rest[place] = rest[place][size:]
        start, end = end, end + size * groups
