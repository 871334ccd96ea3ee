"""python-redis-lock: SET NX EX with an id, a list on which waiters block, scripts that check the id.

    A: SET lock:x a7f3 NX EX 5 → OK
    B:                              SET … → nil, BLPOP lock-signal:x
    A: release: checks the id, RPUSH lock-signal:x, DEL lock:x       one waiter wakes
    A: SET lock:x a7f3 NX EX 5 → OK                                  A is back before B asks: B waits again

    A: (paused past the lease)
    B:                              SET … → OK, read 100, write 120
    A: write 110                                                     B's 20 are gone

Guarantees   the same as `token`, if a lease is given. A waiter wakes at the release.
Breaks when  `token` breaks. Time-outs are truncated to whole seconds, so 0.5 s becomes no limit at all. A wait time
             longer than the lease is refused. A waiter blocks for its wait time, or for the lease. If the client
             waits for a reply for less than that (redis-py's default: 5 s), the wait ends in LockUnavailable; after
             a crash this happens with this library's lease of 5 s too. With `renew`, a renewal thread that dies of
             a lost connection tells nobody. A blocked waiter occupies one of its client's connections, as with
             `token-queue`. In the library, a forked child has its parent's id; here it holds nothing.
Costs        2 round trips to acquire (it first asks whether it already holds the lock), 1 to release; a waiter 2 more.
Source       python-redis-lock 4, `redis_lock.Lock`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import redis_lock
from redis import Redis

from locks.adapted import Adapted
from locks.base import NO_FENCING, NO_RENEWER
from locks.errors import LockError, LockLost, LockNotHeld
from locks.server import answering, typed_errors
from locks.timing import checked_wait, whole_seconds
from locks.token_lock import TokenLock


class PythonRedisLock(Adapted):
    """An adapter for python-redis-lock. Its errors become those of locks.errors; its waiting is unchanged."""

    slug = "python-redis-lock"
    title = "python-redis-lock"
    source = "python-redis-lock, redis_lock.Lock (F6)"
    guarantees = "as `token`, if a lease is given (the library's default is none)"
    breaks_when = "`token` breaks; wait times are not kept"
    round_trips = "2 + 1"
    lease_step = 1.0
    withstands = TokenLock.withstands
    fails: ClassVar[dict[str, str]] = TokenLock.fails | {
        "wait-time": "time-outs are truncated to whole seconds: 0.5 s becomes no limit",
        "waiter-gives-up": "time-outs are truncated to whole seconds: 0.1 s becomes no limit",
        "fairness": "the woken waiter must still ask, and a caller that asks before it gets the lock",
    }
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    def __init__(self, name: str, *, redis: Redis, lease: float | None = 5.0, renew: bool = False) -> None:
        """`lease`: whole seconds (the library's `expire`; its default None means no lease). `renew`: the library's
        `auto_renewal`, a thread that extends the lease after every 2/3 of it."""
        super().__init__(name)
        expire = None if lease is None else whole_seconds(lease)
        client = answering(redis)
        self._adapt(lambda: redis_lock.Lock(client, self.name, expire=expire, auto_renewal=renew))
        self._endless = lease is None
        self._holder: redis_lock.Lock | None = None  # the library's lock, while it is held

    def acquire(self, timeout: float | None = None) -> bool:
        """`timeout` is passed to the library unchanged (0: one attempt, which it calls blocking=False)."""
        with self._translated(held=False):
            if timeout is not None and timeout <= 0:
                taken = self._lock.acquire(blocking=False)
            else:
                taken = self._lock.acquire(timeout=checked_wait(timeout))
        if taken:
            self._holder = self._lock
        return bool(taken)

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        held, self._holder = self.held, None
        with self._translated(held):
            self._lock.release()

    def extend(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended, and
        NotImplementedError if there is no lease."""
        if not self.held:
            raise LockNotHeld(f"{self.name}: extend without holding it")
        if self._endless:
            raise NotImplementedError(
                f"{self.name}: it was taken without a lease, so there is none to extend"
            )
        with self._translated(held=True):
            self._lock.extend()

    @contextmanager
    def _translated(self, held: bool) -> Iterator[None]:
        try:
            with typed_errors(self.name):
                yield
        except redis_lock.NotAcquired as error:
            self._holder = None
            self._adapt_again()  # the loss may have killed its renewal; then every later acquire would raise
            raise (LockLost if held else LockNotHeld)(f"{self.name}: {error}") from error
        except (redis_lock.AlreadyAcquired, redis_lock.TimeoutTooLarge) as error:
            raise LockError(f"{self.name}: {error}") from error

    @property
    def token(self) -> bytes | None:  # type: ignore[override]  # the library's, so it is read-only
        return self._lock.id.encode() if self.held else None

    @property
    def held(self) -> bool:
        """True until the release, even when the lease is over: the library does not look at the clock."""
        return self._holder is self._lock
