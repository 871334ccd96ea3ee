"""The caller's side: each thread keeps a connection to the owner, with one question and one answer at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from os import urandom
from uuid import UUID

from msgspec import Struct

from ledger.models import Book
from ledger.posting import Busy, Posting, Refused, Stored
from ledger.writer import wire
from ledger.writer.candidates import seat
from ledger.writer.connection import Connection

BOOKS = 50  # connections that a thread keeps
BACK_OFF = 0.05  # seconds
_thread = threading.local()


class Answer(Struct, gc=False):
    """The outcome of a request: `stored` entries, `refused` for a reason, or its key was `taken`."""

    word: str
    posting: Posting
    first: int = 0
    balances: list[int] = []
    reason: str = ""

    @property
    def entries(self) -> tuple[Stored, ...]:
        stored, entry = [], self.first
        for line, after in zip(self.posting.lines, self.balances, strict=True):
            stored.append(Stored(UUID(int=entry), line.account, line.amount, after - line.amount, after))
            entry += 1
        return tuple(stored)


def ask(book: Book, postings: Sequence[Posting], timeout: float, lease: float) -> list[Answer]:
    """Let the owner apply `postings`, each by itself, and return the answers in their order.

    Raises TimeoutError if there is no answer after `timeout` seconds: the outcome is unknown. Raises Refused if they
    cannot be sent, and Busy if no owner was found: certainly not applied.
    """
    # ids begin with the second: with fully random ids, each entry would change another page of the index
    window = (int(time.time()) & 0xFFFFFFFF).to_bytes(4, "big") + urandom(8)
    message = _packed(window.hex(), postings)
    deadline, connections = time.monotonic() + timeout, _connections()
    connection = connections.pop(book.id, None)
    told = connection.ask(message, min(timeout, lease)) if connection else None
    if connection is None or told is None:
        connection, told = _insist(book, message, deadline, lease, connection)
    connections[book.id] = connection
    if len(connections) > BOOKS:
        connections.pop(next(iter(connections))).close()  # the least recently used one
    return _answers(postings, int.from_bytes(window, "big") << 32, wire.read_answers(told))


def _insist(
    book: Book, message: bytes, deadline: float, lease: float, connection: Connection | None
) -> tuple[Connection, bytes | bytearray]:
    """Ask the current owner until there is an answer. An owner that is silent for a lease may be paused and no longer
    be the owner. Raises as `ask` does."""
    place, sent, failures = seat(book, lease), connection is not None, 0
    tried = connection.found if connection else None
    while (found := place.find(deadline, tried)) is not None:
        left, told = max(0.001, min(lease, deadline - time.monotonic())), None
        if connection is None or connection.closed or connection.found.secret != found.secret:
            try:
                connection = fresh = Connection(found, left)
                sent, told = True, fresh.ask(message, left)
            except OSError:
                connection = None
        else:
            connection.found = found
            connection.wait(left)
            told = connection.receive()
        if told is not None and connection is not None:
            return connection, told
        tried, left = found, deadline - time.monotonic()
        if left <= 0:
            break
        if connection is None or connection.closed:
            time.sleep(
                min(BACK_OFF * failures, left)
            )  # no wait the first time: then the owner has only changed
            failures += 1
    if sent:
        raise TimeoutError("the book's owner did not answer in time: ask again with the same key")
    raise Busy("no owner of the book was found in time")


def _packed(window: str, postings: Sequence[Posting]) -> bytes:
    requests = []
    for posting in postings:
        if not 0 < len(posting.key) <= wire.LONGEST_KEY:
            raise Refused(f"a key has 1 to {wire.LONGEST_KEY} characters")
        requests.append((posting.key, posting.fingerprint, posting.lines))
    try:
        return wire.frame((window, requests))
    except OverflowError as error:
        raise Refused("an amount leaves the range of BIGINT") from error


def _answers(postings: Sequence[Posting], first: int, told: Sequence[wire.Told]) -> list[Answer]:
    answers = []
    for posting, each in zip(postings, told, strict=True):
        if type(each) is list:
            answers.append(Answer("stored", posting, first, each))
        elif each is None:
            answers.append(Answer("taken", posting))
        else:
            answers.append(Answer("refused", posting, reason=str(each)))
        first += len(posting.lines)
    return answers


def _connections() -> dict[object, Connection]:
    """Return this thread's connections, by book."""
    try:
        return _thread.connections  # type: ignore[no-any-return]
    except AttributeError:
        _thread.connections = {}
        return _thread.connections  # type: ignore[no-any-return]


def _in_child() -> None:
    _thread.__dict__.clear()  # the parent's connections stay the parent's


os.register_at_fork(after_in_child=_in_child)
