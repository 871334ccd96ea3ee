"""Renewal: one thread for each Redis client renews all that is held through it, and hears of every loss.

    holder   acquire ──────────────── working ──────────────── release
    thread            ⅓ lease: extend    ⅓ lease: extend          (nothing held: the thread ends)

It wakes when a third of the shortest lease has passed, so a short section costs no command and no wake-up.
An extension asks whose lock it is: one that is late finds a stranger's token and changes nothing. Renewal ends
with the release, with the holder's thread, and at the grant's cap. When a lease is over without an extension,
whatever the reason, the grant is lost: by the answer of the server, or by the clock of this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from redis.exceptions import RedisError

from locks.fair_lock_grant import Grant
from locks.wire import Wire


class Renewal:
    """The grants of one Redis client and the thread that renews them, which lives while there are any."""

    def __init__(self, new_wire: Callable[[], Wire]) -> None:
        self._new_wire = new_wire
        self._grants: set[Grant] = set()
        self._shortest = float("inf")
        self._gate = threading.Lock()
        self._changed = threading.Event()
        self._running = False

    def watch(self, grant: Grant) -> None:
        """No lock, no system call: the thread looks by itself, and in time for any lease that it knows."""
        self._grants.add(grant)
        if not self._running or grant.terms.lease < self._shortest:
            self._start(grant.terms.lease)

    def forget(self, grant: Grant) -> None:
        self._grants.discard(grant)

    def _start(self, lease: float) -> None:
        with self._gate:
            self._shortest = min(self._shortest, lease)
            if self._running:
                self._changed.set()
                return
            self._running = True
            threading.Thread(target=self._run, name="lock-renewal", daemon=True).start()

    def _run(self) -> None:
        try:
            wire = self._new_wire()
            pause = self._shortest / 3  # nothing is due before; and not a thread for each short section
            while True:
                self._changed.wait(pause)
                self._changed.clear()
                if not self._continues():
                    break
                pause = self._round(wire)
            wire.disconnect()
        finally:
            self._running = False  # also if the thread is killed: the next acquire starts another

    def _continues(self) -> bool:
        """`watch` writes its grant, then looks whether the thread runs; here the order is the other one."""
        with self._gate:
            self._running = False
            self._running = bool(self._grants)
            if not self._running:
                self._shortest = float("inf")
            return self._running

    def _round(self, wire: Wire) -> float:
        """Renew what is due; return the seconds until something can be due again."""
        pause = self._shortest / 3  # what is granted meanwhile is not due before
        for grant in list(self._grants):
            now, lease = time.monotonic(), grant.terms.lease
            over = grant.since + lease
            due = grant.since + lease / 3 if grant.renewable else over
            if now >= over:
                self.forget(grant)
                grant.lose()
            elif now >= due:
                pause = min(pause, self._renew(wire, grant))
            else:
                pause = min(pause, due - now)
        return pause

    def _renew(self, wire: Wire, grant: Grant) -> float:
        """Return the seconds until this grant is due again."""
        third, asked = grant.terms.lease / 3, time.monotonic()
        try:
            mine = wire.ask(grant.terms.calls.extend, grant.word, timeout=third)
        except RedisError:
            return third / 4  # again soon; `lose` follows when the lease is over
        if mine:
            grant.since = asked
        elif grant in self._grants:  # else it was released meanwhile
            self.forget(grant)
            grant.lose()
        return third
