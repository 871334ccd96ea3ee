"""The owner's loop: become the owner, commit group after group, hand over."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time

from django.db import DatabaseError, IntegrityError, connections
from redis import Redis
from redis.exceptions import RedisError

from ledger.models import Book, Entry
from ledger.writer import lease
from ledger.writer.group import Books
from ledger.writer.queue import Order, Queue

log = logging.getLogger(__name__)
LEASE = 2.0  # seconds; a dead owner's callers wait that long for its successor
GROUP = 512  # requests in one transaction
LOOK = 0.2  # seconds that the queue's head is waited for at a time
IDLE = 30.0  # seconds without a request after which an owner steps down


class Owner:
    """One candidate for the ownership of a book. Its steps are public: a test conducts two of them."""

    def __init__(self, book: Book, redis: Redis, seconds: float = LEASE) -> None:
        self.book, self.lease = book, seconds
        self.queue = Queue(redis, book)
        self.books = Books(book)
        self.fence: int | None = None
        self._next: list[Order] = []  # came with the answer to the group before
        self._renewed = 0.0
        self.stop = threading.Event()

    def take_over(self) -> bool:
        """Become the owner, if nobody is. Whatever was in memory is read anew."""
        self.fence = lease.take(self.book, self.lease)
        if self.fence is not None:
            self.books.forget()
            self._next = []
            self.queue.own(self.fence)
        return self.fence is not None

    def serve(self) -> bool:
        """Commit and answer one group. False: nothing was asked for a while."""
        orders, self._next = self._next or self.queue.head(GROUP, min(LOOK, self.lease / 3)), []
        return bool(orders) and self.commit(orders)

    def commit(self, orders: list[Order]) -> bool:
        """Write the group and answer it; step down when there is a newer owner."""
        assert self.fence is not None
        fence, group = self.fence, self.books.compute(orders)
        try:
            written = self.books.commit(group, fence, self.lease)
        except IntegrityError:  # some were committed before: by an owner that died before it could answer
            self.books.forget()
            keys = [request.key for order in orders for request in order.requests]
            taken = Entry.objects.filter(book=self.book, key__in=keys).values_list("key", flat=True)
            group = self.books.compute(orders, taken)
            written = self.books.commit(group, fence, self.lease)
        if not written:
            self.fence = None
            return False
        self._next = self.queue.answer(fence, orders, group.answers, GROUP)
        return True

    def renew(self) -> None:
        """Keep the ownership through a quiet time: start the lease anew once a third of it is over."""
        if self.fence is None or time.monotonic() - self._renewed < self.lease / 3:
            return
        self._renewed = time.monotonic()
        if not lease.renew(self.book, self.fence, self.lease):
            self.fence = None

    def hand_over(self) -> None:
        """Step down before the lease ends."""
        fence, self.fence = self.fence, None
        if fence is not None:
            lease.release(self.book, fence)

    def run(self) -> None:
        """Serve until told to stop, or until nobody has asked for a while."""
        asked = time.monotonic()
        try:
            while not self.stop.is_set() and time.monotonic() - asked < IDLE:
                try:
                    if self.fence is None and not self.take_over():
                        self.stop.wait(self.lease / 4)
                    elif self.fence is not None and self.serve():
                        asked = time.monotonic()
                    else:
                        self.renew()
                except (DatabaseError, RedisError) as error:
                    log.warning("the owner of book %s starts again: %s", self.book.pk, error)
                    self.fence = None
                    connections.close_all()
                    self.stop.wait(self.lease / 4)
            self.hand_over()
        finally:
            connections.close_all()


_owners: dict[object, tuple[Owner, threading.Thread]] = {}
_guard = threading.Lock()


def candidate(book: Book, redis: Redis, seconds: float) -> None:
    """See to it that a thread of this process stands ready to own `book`."""
    with _guard:
        known = _owners.get(book.pk)
        if known is None or not known[1].is_alive():
            owner = Owner(book, redis, seconds)
            thread = threading.Thread(target=owner.run, name=f"owner-{book.pk}", daemon=True)
            _owners[book.pk] = owner, thread
            thread.start()


def dismiss() -> None:
    """End this process's candidates and let others own their books at once."""
    with _guard:
        owners = list(_owners.values())
        _owners.clear()
    for owner, _ in owners:
        owner.stop.set()
    for owner, thread in owners:
        thread.join(owner.lease)


def _in_child() -> None:
    global _guard  # noqa: PLW0603  (a lock that another thread held at the fork is held for ever)
    _guard = threading.Lock()
    _owners.clear()


os.register_at_fork(after_in_child=_in_child)
atexit.register(dismiss)
