"""The owner of a book. It receives requests, commits one group while the next one gathers, and answers."""

from __future__ import annotations

import threading
import time
from selectors import EVENT_READ, BaseSelector, DefaultSelector
from typing import Any

import psycopg
from django.db import DatabaseError, connections

from ledger.models import Book
from ledger.writer import lease
from ledger.writer.balances import OwnedAccounts
from ledger.writer.clients import Clients
from ledger.writer.group import COMMIT, Group
from ledger.writer.statement import Statement

LEASE = 2.0  # seconds; a dead owner's callers wait that long for its successor
GROUP = 512  # entries in one transaction; one order alone may have more
ENOUGH = 128  # entries at which a group is sent without waiting for more: its work then exceeds a commit's
LOOK = 0.2  # seconds that it waits for callers at a time
IDLE = 30.0  # seconds without a request after which an owner steps down
TROUBLES = (psycopg.Error, DatabaseError, OSError)


class Owner:
    """One candidate for the ownership of a book. Its steps are public, because a test drives two of them."""

    def __init__(self, book: Book, seconds: float = LEASE) -> None:
        self.book, self.lease = book, seconds
        self.books = OwnedAccounts(book)
        self.statement = Statement("ledger_group", COMMIT)
        self.selector: BaseSelector | None = None
        self.clients: Clients | None = None
        self.fence: int | None = None
        self.group: Group | None = None  # being committed
        self.ahead = Group()  # computed meanwhile
        self._heard: Any = None  # the session whose socket the selector has
        self._socket = -1
        self._repeated = False
        self._begun = self._renewed = 0.0
        self.stop = threading.Event()

    @property
    def address(self) -> str:
        """Return the address where it listens, or "" while it owns nothing."""
        return self.clients.address if self.clients else ""

    def take_over(self) -> bool:
        """Become the owner if there is none. The accounts are read again."""
        self.let_go()
        self.selector = DefaultSelector()
        self.clients = Clients(self.selector)
        try:
            self.fence = lease.take(self.book, self.lease, self.clients.address, self.clients.secret)
        finally:
            if self.fence is None:
                self.let_go()
        self._renewed = time.monotonic()
        self.books.forget()
        return self.fence is not None

    def hear(self, timeout: float = 0.0) -> bool:
        """Handle input from callers and the database. Returns False if nothing happened."""
        assert self.selector is not None
        events = self.selector.select(timeout)
        for key, mask in events:
            key.data(mask)
        return bool(events)

    def serve(self, timeout: float = 0.0) -> bool:
        """One turn: receive, compute, and send the next group if the previous one is on disk and it is large enough."""
        if self.group is None and self.ahead.asked and self.clients is not None:
            timeout = min(timeout, self.clients.wait(ENOUGH - self.ahead.size))
        heard = self.hear(timeout)
        if self.clients is not None:
            self.prepare()
            if self.group is None and self.ahead.asked and not self.clients.wait(ENOUGH - self.ahead.size):
                self.begin()
        return heard

    def prepare(self) -> None:
        """Compute the next group, even while the previous one is being committed.

        It is sent once the previous group is on disk, and never if that fails. The session is busy meanwhile, so an
        order with an account that is not in memory has to wait, and so do all later orders.
        """
        assert self.clients is not None
        asked, ahead = self.clients.asked, self.ahead
        if asked and self.group is None:
            self.books.load(asked)
        while asked and (self.group is None or self.books.ready(asked[0])):
            if ahead.asked and ahead.size + len(asked[0].order.requests) > GROUP:
                break
            self.books.add(asked.popleft(), ahead)

    def begin(self) -> None:
        """Send the computed group to the database, without waiting."""
        assert self.clients is not None
        ahead, self.ahead, self._repeated = self.ahead, Group(), False
        self.clients.awaited.clear()
        self._send(ahead)

    def _send(self, group: Group) -> None:
        assert self.fence is not None
        self.group, self._begun = group, time.monotonic()
        socket = self.statement.send(group.values(self.book, self.fence, self.lease))
        assert self.selector is not None
        if self.statement.session is not self._heard:
            if self._heard is not None:
                self.selector.unregister(self._socket)
            self._heard, self._socket = self.statement.session, socket
            self.selector.register(socket, EVENT_READ, self.finish)

    def finish(self, _: int = 0) -> None:
        """Read the result of the group: answer its callers, or step down if there is a newer owner."""
        assert self.clients is not None
        try:
            owned = self.statement.result()
        except psycopg.IntegrityError:
            if self._repeated:
                raise
            self._repeat()
            return
        if owned is None or self.group is None:
            return
        group, self.group = self.group, None
        if not owned:
            self.let_go()
            return
        self._renewed = time.monotonic()
        took = self._renewed - self._begun
        self.books.look_again(group)
        if self.ahead.size >= ENOUGH:
            self.begin()
        for (client, _order), answers in zip(group.asked, group.answers, strict=True):
            self.clients.answer(client, answers)
        # waiting for longer than a commit takes costs more than it saves
        self.clients.expect(group.asked, took)

    def _repeat(self) -> None:
        """An earlier owner committed some of the requests and died before it could answer: compute the group again, and
        then what was computed on top of it."""
        assert self.group is not None
        asked, self._repeated = self.group.asked, True
        self._give_up_ahead()
        self.books.forget()
        self._send(self.books.compute(asked, self.books.known(asked)))

    def _give_up_ahead(self) -> None:
        if self.clients is not None:
            self.clients.asked.extendleft(reversed(self.ahead.asked))
        self.ahead = Group()

    def renew(self) -> None:
        """Keep the ownership while no requests arrive: restart the lease once a third of it is over."""
        if self.group is not None or self.fence is None or time.monotonic() - self._renewed < self.lease / 3:
            return
        self._renewed = time.monotonic()
        if not lease.renew(self.book, self.fence, self.lease):
            self.let_go()

    def let_go(self) -> None:
        """Own nothing, and end all connections. The callers then ask the next owner."""
        self.fence = self.group = self._heard = None
        self.ahead = Group()
        if self.clients is not None:
            self.clients.close()
            self.clients = None
        if self.selector is not None:
            self.selector.close()
            self.selector = None

    def finish_group(self) -> None:
        """Wait for the group that is being committed, and answer it. This takes half a lease at most, so `dismiss` does
        not wait in vain."""
        self._give_up_ahead()
        until = time.monotonic() + self.lease / 2
        while self.group is not None and (left := until - time.monotonic()) > 0:
            self.hear(left)

    def hand_over(self) -> None:
        """Step down before the lease ends. While a group is being committed, the lease is not released: the session is
        busy, and the group locks the lease's row."""
        fence = self.fence if self.group is None else None
        self.let_go()
        if fence is not None:
            lease.release(self.book, fence)

    def forget_sockets(self) -> None:
        """In a forked child: close the copies, and leave the parent's alone."""
        if self.clients is not None:
            self.clients.forget_sockets()
        if self.selector is not None:
            self.selector.close()

    def run(self) -> None:
        """Serve until `stop` is set, there is a newer owner, or no caller has asked for a while."""
        asked = time.monotonic()
        try:
            while self.fence is not None and not self.stop.is_set() and time.monotonic() - asked < IDLE:
                if self.serve(min(LOOK, self.lease / 3)):
                    asked = time.monotonic()
                else:
                    self.renew()
            self.finish_group()
        except TROUBLES:
            # the group may still be committed, but not after another process, or this one again, has taken over
            connections.close_all()
            self.group = None
            raise
        finally:
            self.hand_over()
