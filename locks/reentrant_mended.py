"""reentrant-mended: the reentrant lock, mended. Its owner is one holding of one thread, with one renewal that ends.

    thread 1: acquire → HSET lock 5e1b… 1, read 100               5e1b…: drawn for this holding
    thread 2: acquire → HEXISTS lock a07c… → 0: refused           the same object, another owner, a holding of its own
    thread 1: acquire → HSET lock 5e1b… 2; release → 1; release → DEL
    thread 1: (inside, and its lease is over) acquire → 0, though the lock is free: LockLost

    what still breaks it:
    A: (the whole process is paused past the lease, and so is its renewal)
    B:                    acquire → 1, read 100, write 120
    A: write 110          B's 20 are gone; A learns it at its release (LockLost), `.held` is False before

Guarantees   mutual exclusion between objects and between threads, while the holder's process runs, its renewal
             reaches the server, and the server forgets nothing. A holding has one renewal thread, whatever its
             depth. The renewal checks whose lock it is. It ends with the release, with the thread that acquired, with
             the lock object, and after `cap` seconds. An interrupted acquire gives back what it was granted.
Breaks when  the process is paused past the lease or cut off; the section outlasts `cap`; the server loses the key.
Costs        1 round trip to acquire (one more every 50 ms while waiting), 1 to release, 1 every third of the lease.
Source       ours: `reentrant` with its five flaws mended.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from contextlib import suppress
from typing import ClassVar
from weakref import ref

from redis import Redis
from redis.exceptions import RedisError

from locks.base import NO_FENCING, Lock, without
from locks.errors import LockError, LockLost, LockNotHeld, LockUnavailable
from locks.hazards import OWNED_LEASE, Hazard
from locks.server import LuaScript, answering, typed_errors
from locks.timing import checked_cap, checked_wait, milliseconds, poll_until
from locks.token_lock import TokenLock


class ReentrantMendedLock(Lock):
    """Counts the entries of one thread of one object, and renews them while that thread lives."""

    slug = "reentrant-mended"
    title = "Reentrant lock, mended"
    source = "ours, after D4"
    guarantees = (
        "mutual exclusion between objects and threads while the process runs, its renewal reaches the server,"
        " and the server forgets nothing; nested acquires"
    )
    breaks_when = "the process is paused or cut off; the section outlasts the cap; the server loses the key"
    round_trips = "1 + 1, and 1 every third of the lease"
    lease_step = 0.001
    renews = True
    withstands = OWNED_LEASE | {Hazard.OVERRUN, Hazard.STAMPEDE, Hazard.CONNECTIONS}
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated")
    not_applicable: ClassVar[dict[str, str]] = NO_FENCING

    acquire_script = LuaScript("reentrant_mended_acquire.lua")
    release_script = LuaScript("reentrant_mended_release.lua")
    renew_script = LuaScript("reentrant_renew.lua")

    def __init__(
        self, name: str, *, redis: Redis, lease: float = 10.0, poll: float = 0.05, cap: float = 300.0
    ) -> None:
        """Seconds: `lease`, `poll` between two attempts, `cap` after which a holding is no longer renewed."""
        super().__init__(name)
        self.redis, self.lease, self.poll = answering(redis), milliseconds(lease), poll
        self.cap = checked_cap(cap)
        self._holdings: dict[threading.Thread, _Holding] = {}
        self._process = os.getpid()

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockLost in a thread that is inside and whose lease has ended: it does not enter again."""
        checked_wait(
            timeout
        )  # a bad value is refused before the server is asked, so there is nothing to undo
        holding = self._own() or _Holding()
        depth = holding.entries
        try:
            with typed_errors(self.name):
                return poll_until(lambda: self._attempt(holding), self.poll, timeout)
        except BaseException as error:
            self._undo(holding, depth, error)
            raise

    def _attempt(self, holding: _Holding) -> bool:
        depth, asked = holding.entries + 1, time.monotonic()
        if not self.acquire_script(self.redis, [self.name], [holding.owner, self.lease, depth]):
            if depth > 1:
                holding.valid_until = 0.0
                raise LockLost(f"{self.name}: lost inside; release it, re-read what was written, start again")
            return False
        if depth == 1:
            ends = asked + self.cap
            renewal = threading.Thread(target=_renew, args=(ref(self), holding, ends), daemon=True)
            self._holdings[holding.thread] = holding
            renewal.start()
        holding.entries, holding.valid_until = depth, asked + self.lease / 1000
        return True

    def _undo(self, holding: _Holding, depth: int, error: BaseException) -> None:
        """Undo an interrupted attempt: its caller does not know that it is inside, and will not release."""
        holding.entries = depth
        if depth:
            return
        holding.stop.set()
        self._holdings.pop(holding.thread, None)
        # After LockUnavailable the lease ends it. A script that was refused halfway has set no lease.
        if not isinstance(error, LockUnavailable):
            with suppress(RedisError):
                self.release_script(self.redis, [self.name], [holding.owner, 0])

    def _start_again(self, holding: _Holding) -> None:
        asked = time.monotonic()
        with typed_errors(self.name):
            renewed = self.renew_script(self.redis, [self.name], [holding.owner, self.lease])
        holding.valid_until = asked + self.lease / 1000 if renewed else 0.0
        if not renewed:
            raise LockLost(f"{self.name}: the lease ended before it was renewed; stop writing")

    def extend(self) -> None:
        """Raises LockNotHeld if this thread holds nothing, LockLost if the lease had already ended."""
        self._start_again(self._mine("extend"))

    def release(self) -> None:
        """Leave once. Raises LockNotHeld if this thread holds nothing, LockLost if its lease had already ended."""
        holding = self._mine("release")
        holding.entries -= 1
        if not holding.entries:
            holding.stop.set()
            del self._holdings[holding.thread]
        with typed_errors(self.name):
            left = self.release_script(self.redis, [self.name], [holding.owner, holding.entries])
        if not left:
            holding.stop.set()
            holding.valid_until = 0.0
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )

    def _own(self) -> _Holding | None:
        """This thread's holding. A forked child holds nothing: its thread is not its parent's."""
        if self._process != os.getpid():
            self._process, self._holdings = os.getpid(), {}
        return self._holdings.get(threading.current_thread())

    def _mine(self, verb: str) -> _Holding:
        holding = self._own()
        if holding is None:
            raise LockNotHeld(f"{self.name}: {verb} by a thread that does not hold it")
        return holding

    @property
    def held(self) -> bool:
        """Whether this thread holds it; in a thread that has no holding, whether any thread does. Also False once the
        lease is over by this process's clock, or the renewal found it lost."""
        holding = self._own()
        return holding.held if holding else any(each.held for each in list(self._holdings.values()))

    @property
    def token(self) -> bytes | None:  # type: ignore[override]  # this thread's, so it is read-only
        return holding.owner if (holding := self._own()) else None


def _renew(lock: ref[ReentrantMendedLock], holding: _Holding, until: float) -> None:
    """Runs in its own thread. It does not keep the lock object alive: without the object, nobody could release."""
    while (mine := lock()) is not None and time.monotonic() < until:
        turn = mine.lease / 3000
        del mine
        if holding.stop.wait(turn) or (mine := lock()) is None:
            return
        if not holding.thread.is_alive():
            mine._holdings.pop(holding.thread, None)
            return
        try:
            mine._start_again(holding)
        except LockLost:
            return
        except LockError:  # the server cannot be reached now; `held` ends with the lease
            continue


class _Holding:
    """Belongs to the thread that creates it. It keeps the thread object, because the id of a dead thread is reused.
    `valid_until`: on `time.monotonic()`'s clock."""

    def __init__(self) -> None:
        self.owner, self.thread = secrets.token_hex(16).encode(), threading.current_thread()
        self.entries, self.valid_until = 0, 0.0
        self.stop = threading.Event()

    @property
    def held(self) -> bool:
        return time.monotonic() < self.valid_until
