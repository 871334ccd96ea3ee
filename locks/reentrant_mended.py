"""reentrant-mended: the reentrant lock whose owner is one holding of one thread, with one renewal that ends.

    thread 1: acquire → HSET lock 5e1b… 1, read 100               5e1b…: drawn for this holding
    thread 2: acquire → HEXISTS lock a07c… → 0: refused           the same object, another owner
    thread 1: acquire → HSET lock 5e1b… 2; release → 1; release → DEL
    thread 1: (inside, and its lease is over) acquire → 0, though the lock is free: LockLost

    what still breaks it:
    A: (the whole process is paused past the lease, and so is its renewal)
    B:                    acquire → 1, read 100, write 120
    A: write 110          B's 20 are gone; A learns it at its release (LockLost), `.held` is False before

Guarantees   mutual exclusion between objects and between threads, while the holder's process runs and the
             server forgets nothing. One renewal thread for a holding, whatever its depth; it asks whose lock it
             is, it ends with the release, with the death of the thread that acquired, and after `cap` seconds.
Breaks when  the process is paused past the lease; the section outlasts `cap`; the server loses the key.
Costs        1 round trip to acquire (again every 50 ms while waiting), 1 to release, 1 each third of a lease.
Source       ours: `reentrant` with its five flaws mended.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import ClassVar

from redis import Redis

from locks.base import NO_FENCING, Lock
from locks.errors import LockError, LockLost, LockNotHeld
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.server import LuaScript, typed_errors
from locks.timing import milliseconds, poll_until
from locks.token_lock import TokenLock


class ReentrantMendedLock(Lock):
    """Counted entries of one thread of one object, renewed while that thread lives."""

    slug = "reentrant-mended"
    title = "Reentrant lock, mended"
    source = "ours, after `reentrant`"
    guarantees = "mutual exclusion between objects and threads while the process runs; nested acquires"
    breaks_when = (
        "the process is paused past the lease; the section outlasts the cap; the server loses the key"
    )
    round_trips = "1 + 1, and 1 each third of a lease"
    lease_step = 0.001
    renews = True
    withstands = (TokenLock.withstands - {Hazard.RENEWAL_DIES}) | BESIDE_THE_LOCK | {Hazard.OVERRUN}
    fails: ClassVar[dict[str, str]] = TokenLock.fails
    not_applicable: ClassVar[dict[str, str]] = NO_FENCING

    acquire_script = LuaScript("reentrant_mended_acquire.lua")
    release_script = LuaScript("reentrant_mended_release.lua")
    renew_script = LuaScript("reentrant_renew.lua")

    def __init__(
        self, name: str, *, redis: Redis, lease: float = 10.0, poll: float = 0.05, cap: float = 300.0
    ) -> None:
        """Seconds: `lease`, `poll` between two attempts, `cap` after which a holding is renewed no more."""
        super().__init__(name)
        self.redis, self.lease, self.poll, self.cap = redis, milliseconds(lease), poll, cap
        self._holder: tuple[int, threading.Thread] | None = None
        self._entries, self._valid_until = 0, 0.0
        self._stop = threading.Event()

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockLost to a thread that is inside and whose lease had ended: it enters nothing then."""
        owner = self.token if self.token and self._holder == _me() else secrets.token_hex(16).encode()
        with typed_errors(self.name):
            return poll_until(lambda: self._attempt(owner), self.poll, timeout)

    def _attempt(self, owner: bytes) -> bool:
        depth, asked = (self._entries if self.token == owner else 0) + 1, time.monotonic()
        if not self.acquire_script(self.redis, [self.name], [owner, self.lease, depth]):
            if depth > 1:
                self._valid_until = 0.0
                raise LockLost(f"{self.name}: lost inside; release it, re-read what was written, start again")
            return False
        self.token, self._entries, self._valid_until = owner, depth, asked + self.lease / 1000
        self._holder = _me()
        if depth == 1:
            self._stop = threading.Event()
            watch = (self._stop, owner, threading.current_thread(), asked + self.cap)
            threading.Thread(target=self._renew, args=watch, daemon=True).start()
        return True

    def _renew(self, stop: threading.Event, owner: bytes, holder: threading.Thread, until: float) -> None:
        while not stop.wait(self.lease / 3000) and holder.is_alive() and time.monotonic() < until:
            try:
                self._start_anew(owner)
            except LockLost:
                return
            except LockError:  # the server cannot be asked just now; `held` ends with the lease
                continue

    def _start_anew(self, owner: bytes) -> None:
        asked = time.monotonic()
        with typed_errors(self.name):
            renewed = self.renew_script(self.redis, [self.name], [owner, self.lease])
        if self.token == owner:
            self._valid_until = asked + self.lease / 1000 if renewed else 0.0
        if not renewed:
            raise LockLost(f"{self.name}: the lease ended before it was renewed; stop writing")

    def extend(self) -> None:
        """Raises LockNotHeld without a holding of this thread, LockLost when the lease had ended before."""
        self._start_anew(self._mine("extend"))

    def release(self) -> None:
        """Leave once. Raises LockNotHeld without a holding of this thread, LockLost when its lease had ended."""
        owner, rest = self._mine("release"), self._entries - 1
        self._entries = rest
        if not rest:
            self._stop.set()
            self.token = None
        with typed_errors(self.name):
            left = self.release_script(self.redis, [self.name], [owner, rest])
        if not left:
            self._stop.set()
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )

    def _mine(self, verb: str) -> bytes:
        if self.token is None or self._holder != _me():
            raise LockNotHeld(f"{self.name}: {verb} without holding it")
        return self.token

    @property
    def held(self) -> bool:
        """False too when the lease is over by this process's own clock, or the renewal found it lost."""
        return self.token is not None and time.monotonic() < self._valid_until


def _me() -> tuple[int, threading.Thread]:
    """A forked child's thread is not its parent's; a dead thread's number may be another's soon, the thread is not."""
    return os.getpid(), threading.current_thread()
