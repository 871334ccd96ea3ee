"""A caller's side: a connection to the owner that stays with the thread, one question and one answer at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from secrets import token_hex
from socket import socket
from uuid import UUID

from msgspec import Struct

from ledger.models import Book
from ledger.posting import Busy, Posting, Refused, Stored, worker
from ledger.writer import address, wire
from ledger.writer.candidates import Found, Seat, seat

RECEIVE = 262_144  # bytes
LONGEST_KEY = 100
BACK_OFF = 0.05  # seconds
_thread = threading.local()


class Answer(Struct, gc=False):
    """What became of a request: `stored` entries, or `refused` for a reason, or its key was `taken`."""

    word: str
    posting: Posting
    window: str = ""
    number: int = 0
    balances: list[int] = []
    reason: str = ""

    @property
    def entries(self) -> tuple[Stored, ...]:
        return tuple(
            Stored(UUID(f"{self.window}{number:08x}"), line.account, line.amount, after - line.amount, after)
            for number, (line, after) in enumerate(
                zip(self.posting.lines, self.balances, strict=True), self.number
            )
        )


class Connection:
    """One thread's connection to one owner."""

    def __init__(self, found: Found, timeout: float) -> None:
        self.found = found
        self.received: bytes | bytearray = b""
        self.socket: socket = address.connect(found.address, timeout)
        self.greeting = wire.frame(wire.Hello(found.secret, worker()))

    def send(self, message: bytes, patience: float) -> None:
        """Ask. Who silently takes nothing, or answers nothing, for `patience` seconds raises TimeoutError."""
        self.socket.settimeout(patience)
        self.socket.sendall(self.greeting + message if self.greeting else message)
        self.greeting = self.received = b""

    def receive(self) -> bytes | bytearray:
        """Return the answer. Raises TimeoutError when it has not come (ask again), OSError when it will not."""
        while True:
            received = self.socket.recv(RECEIVE)
            if not received:
                raise ConnectionResetError("the owner closed the connection")
            self.received = self.received + received if self.received else received
            body, _ = wire.cut(self.received)
            if body is not None:
                return body


def ask(book: Book, postings: Sequence[Posting], timeout: float, lease: float) -> list[Answer]:
    """Have `postings` applied, each by itself, and return the answers in their order.

    Raises TimeoutError when there is no answer after `timeout` seconds: whether they were applied is unknown. Raises
    Refused when they cannot be asked for, and Busy when no owner was found: certainly not applied.
    """
    window = token_hex(12)
    message = _packed(window, postings)
    place, connections = seat(book, lease), _connections()
    deadline = time.monotonic() + timeout
    connection: Connection | None = connections.pop(book.pk, None)
    tried: Found | None = None
    sent, failures = False, 0
    while (left := deadline - time.monotonic()) > 0:
        try:
            if connection is None:
                tried = place.find(deadline, tried)
                if tried is None:
                    break
                connection = Connection(tried, min(left, lease))
            sent = True
            connection.send(message, min(left, lease))
            told = wire.read_answers(_patiently(connection, place, deadline))
        except (OSError, wire.TooLong):  # whoever was asked is dead, or not the owner any more
            if connection is not None:
                tried = connection.found
                connection.socket.close()
                connection = None
            failures += 1
            if failures > 1:  # the first time, the owner merely changed
                time.sleep(min(BACK_OFF * failures, max(0.0, deadline - time.monotonic())))
            continue
        connections[book.pk] = connection
        return _answers(postings, window, told)
    if sent:
        raise TimeoutError(
            f"the book's owner did not answer within {timeout:g} s: ask again with the same key"
        )
    raise Busy(f"no owner of the book was found within {timeout:g} s")


def _patiently(connection: Connection, place: Seat, deadline: float) -> bytes | bytearray:
    """Wait for the answer. An owner that is silent for a lease may be paused: is it the owner still?"""
    while True:
        try:
            return connection.receive()
        except TimeoutError:
            found = place.find(deadline, connection.found)
            if found is None or found.secret != connection.found.secret:
                raise ConnectionResetError("there is another owner") from None
            connection.found = found
            connection.socket.settimeout(max(0.001, min(place.lease, deadline - time.monotonic())))


def _packed(window: str, postings: Sequence[Posting]) -> bytes:
    requests = []
    for posting in postings:
        if not 0 < len(posting.key) <= LONGEST_KEY:
            raise Refused(f"a key has 1 to {LONGEST_KEY} characters")
        lines = [(line.account, line.amount) for line in posting.lines]
        requests.append((posting.key, posting.fingerprint, lines))
    try:
        return wire.frame((window, requests))
    except OverflowError as error:
        raise Refused("an amount leaves the range of BIGINT") from error


def _answers(postings: Sequence[Posting], window: str, told: Sequence[wire.Told]) -> list[Answer]:
    answers, number = [], 0
    for posting, each in zip(postings, told, strict=True):
        if type(each) is list:
            answers.append(Answer("stored", posting, window, number, each))
        elif each is None:
            answers.append(Answer("taken", posting))
        else:
            answers.append(Answer("refused", posting, reason=str(each)))
        number += len(posting.lines)
    return answers


def _connections() -> dict[object, Connection]:
    """Return this thread's connections, by book."""
    held: dict[object, Connection] = _thread.__dict__.setdefault("connections", {})
    return held


def _in_child() -> None:
    _thread.__dict__.clear()  # the parent's connections stay the parent's


os.register_at_fork(after_in_child=_in_child)
