"""Renewal: one thread for each Redis client renews all that is held through it, and hears of every loss.

    holder   acquire ──────────────── working ──────────────── release
    thread            ⅓ lease: extend    ⅓ lease: extend          (nothing held: the thread ends)

It wakes when a third of the shortest lease has passed, so a short section costs no command and no wake-up.
An extension asks whose lock it is: one that is late finds a stranger's token and changes nothing. Renewal ends
with the release, with the holder's thread, and at the grant's cap. When a lease is over without an extension,
whatever the reason, the grant is lost: by the answer of the server, or by the clock of this process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from locks.wire import Wire, packed

if TYPE_CHECKING:
    from locks.fair_lock import FairLock

_log = logging.getLogger(__name__)


class Grant:
    """One holding of one lock by one thread. Times are seconds on `time.monotonic()`'s clock."""

    __slots__ = (
        *("token", "number", "lease", "since", "acquired", "cap"),
        *("extend", "lost", "depth", "_lock", "_thread"),
    )

    def __init__(self, token: bytes, number: int, since: float, lock: FairLock) -> None:
        """`since`: when the lease began, or a moment before."""
        self.token, self.number = token, number
        self.since = self.acquired = since
        self.lease = lock.lease / 1000
        self.cap = lock.cap if lock.renew else 0.0
        self.extend = lock.calls.extend
        self.lost = False
        self.depth = 1
        self._lock = lock.itself  # weak: a lock that nobody can release any more is not renewed
        self._thread = threading.current_thread()

    @property
    def held(self) -> bool:
        return not self.lost and time.monotonic() < self.since + self.lease

    @property
    def renewable(self) -> bool:
        """Renewal ends at the cap, and when the thread that holds the lock died without a release."""
        return time.monotonic() - self.acquired < self.cap and self._thread.is_alive()

    def lose(self) -> None:
        """Tell the lock, once."""
        lock, told, self.lost = self._lock(), self.lost, True
        if not told and lock is not None and lock.on_lost is not None:
            try:
                lock.on_lost(lock)
            except Exception:  # noqa: BLE001  whatever it is, the other locks must be renewed
                _log.exception("%s: the on_lost callback failed", lock.name)


class Renewal:
    """The grants of one Redis client and the thread that renews them, which lives while there are any."""

    def __init__(self, new_wire: Callable[[], Wire]) -> None:
        self._new_wire = new_wire
        self._grants: dict[bytes, Grant] = {}
        self._shortest = float("inf")
        self._gate = threading.Lock()
        self._changed = threading.Event()
        self._running = False

    def watch(self, grant: Grant) -> None:
        """No lock, no system call: the thread looks by itself, and in time for any lease that it knows."""
        self._grants[grant.token] = grant
        if not self._running or grant.lease < self._shortest:
            self._start(grant.lease)

    def forget(self, token: bytes) -> None:
        self._grants.pop(token, None)

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
            while self._continues():
                self._changed.wait(self._round(wire))
                self._changed.clear()
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
        for grant in list(self._grants.values()):
            now = time.monotonic()
            over = grant.since + grant.lease
            due = grant.since + grant.lease / 3
            if not grant.renewable:
                due = over
            if now >= over:
                self.forget(grant.token)
                grant.lose()
            elif now >= due:
                pause = min(pause, self._renew(wire, grant))
            else:
                pause = min(pause, due - now)
        return pause

    def _renew(self, wire: Wire, grant: Grant) -> float:
        """Return the seconds until this grant is due again."""
        third, asked = grant.lease / 3, time.monotonic()
        try:
            lease = b"%d" % round(grant.lease * 1000)
            mine = wire.ask(grant.extend, packed(grant.token, lease), timeout=third)
        except RedisError:
            wire.disconnect()
            return third / 4  # again soon; `lose` follows when the lease is over
        if mine:
            grant.since = asked
            return third
        if self._grants.pop(grant.token, None) is not None:  # else it was released meanwhile
            grant.lose()
        return third
