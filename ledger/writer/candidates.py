"""The owners of the books as this process knows them, and this process's own candidates.

Callers that find no owner wait here. One thread for each book looks for the owner in the lease's row. When the lease
has ended, it takes the book over and serves it. While another process serves all callers, no thread is left.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from dataclasses import dataclass

from django.db import connections

from ledger.models import Book
from ledger.writer import address, lease
from ledger.writer.owner import TROUBLES, Owner

log = logging.getLogger(__name__)
AGAIN = 0.1  # seconds between two looks at the row while there is no owner


@dataclass(frozen=True, slots=True, eq=False)
class FormerOwner:
    """An owner that existed a moment ago."""

    address: str
    secret: str


class Seat:
    """A book's ownership, as this process sees it."""

    def __init__(self, book: Book, seconds: float) -> None:
        self.book, self.lease = book, seconds
        self.owner = Owner(book, seconds)
        self.changed = threading.Condition()
        self.found: FormerOwner | None = None
        self.waiting = 0
        self.thread: threading.Thread | None = None

    def find(self, deadline: float, tried: FormerOwner | None = None) -> FormerOwner | None:
        """Return the owner, but look again if it is `tried`, which did not answer. None: no owner until `deadline`."""
        with self.changed:
            if self.found is tried:
                self.found = self._own()
            self.waiting += 1
            try:
                if self.found is None and self.thread is None:
                    thread = threading.Thread(target=self._work, name=f"owner-{self.book.pk}", daemon=True)
                    thread.start()
                    self.thread = thread
                self.changed.wait_for(lambda: self.found is not None, max(0.0, deadline - time.monotonic()))
            finally:
                self.waiting -= 1
            return self.found

    def _own(self) -> FormerOwner | None:
        clients = self.owner.clients
        return (
            FormerOwner(clients.address, clients.secret) if clients and self.owner.fence is not None else None
        )

    def _publish(self, found: FormerOwner | None) -> None:
        with self.changed:
            self.found = found
            self.changed.notify_all()

    def _work(self) -> None:
        """Look for the owner, or become it, as long as a caller waits for one."""
        try:
            while not self._over():
                try:
                    self._look()
                except TROUBLES as error:
                    log.warning("looking for the owner of book %s again: %s", self.book.pk, error)
                    connections.close_all()
                    self.owner.stop.wait(AGAIN)
        finally:
            with self.changed:  # however it ended: the next caller starts a new search
                if self.thread is threading.current_thread():
                    self.thread = None
            connections.close_all()

    def _over(self) -> bool:
        with self.changed:
            over = self.owner.stop.is_set() or self.found is not None or not self.waiting
            if over:
                self.thread = None
            return over

    def _look(self) -> None:
        held = lease.find(self.book)
        if held and held.left > 0:
            if _listens(held.address):
                self._publish(FormerOwner(held.address, held.secret))
            else:
                self.owner.stop.wait(min(held.left, AGAIN))
        elif self.owner.take_over():
            self._publish(self._own())
            try:
                self.owner.run()
            finally:
                self._publish(None)


def _listens(where: str) -> bool:
    try:
        address.connect(where, 1.0).close()
    except OSError:
        return False
    return True


_seats: dict[object, Seat] = {}
_guard = threading.Lock()


def seat(book: Book, seconds: float) -> Seat:
    """Return what this process knows of the owner of `book`."""
    known = _seats.get(book.pk)
    if known is None:
        with _guard:
            known = _seats.setdefault(book.pk, Seat(book, seconds))
    return known


def dismiss() -> None:
    """End this process's owners and candidates, and free their books for other processes at once."""
    with _guard:
        seats = list(_seats.values())
        _seats.clear()
    for each in seats:
        each.owner.stop.set()
    for each in seats:
        if thread := each.thread:
            thread.join(each.lease + AGAIN)


def _in_child() -> None:
    """The parent keeps its owners. With an open copy of their sockets in the child, callers would go on waiting for a
    dead parent."""
    global _guard  # noqa: PLW0603  (a lock that another thread held at the fork is held for ever)
    _guard = threading.Lock()
    for each in _seats.values():
        each.owner.forget_sockets()
    _seats.clear()


os.register_at_fork(after_in_child=_in_child)
atexit.register(dismiss)
