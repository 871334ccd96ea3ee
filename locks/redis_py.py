"""redis-py: the lock that ships with the client library, `redis.lock(name, timeout=…)`.

    A: SET lock a7f3 NX PX 5000 → OK, read 100
    A: (paused past the lease)
    B:                                 SET lock 91c2 NX PX 5000 → OK, read 100, write 120
    A: write 110                                                          B's 20 are gone
    A: release → LockNotOwnedError (here: LockLost)

    with the library's default, timeout=None:
    A: SET lock a7f3 NX → OK, (crashes)       no lease: everyone waits for ever

Guarantees   the same as `token`, if a lease is given.
Breaks when  `token` breaks. Without `timeout` there is no lease (redis-py #962). A waiter polls every 0.1 s, so a
             process that comes back at once overtakes all waiters. A waiter gives up to one poll too early. In the
             library, a forked child releases its parent's lock; here it holds nothing.
Costs        1 round trip to acquire (one more every 0.1 s while waiting), 1 to release, 1 to extend.
Source       redis-py, `redis.lock.Lock`; django-redis hands out the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from redis import Redis
from redis.exceptions import LockNotOwnedError

from locks.adapted import Adapted
from locks.base import NO_FENCING, NO_RENEWER
from locks.errors import LockLost, LockNotHeld
from locks.server import answering, typed_errors
from locks.timing import checked_poll, checked_wait, milliseconds
from locks.token_lock import TokenLock


def checked_lease(lease: float | None) -> float | None:
    """Return `lease`. Raises ValueError where the server would refuse it, and for 0, which the library treats as
    None."""
    if lease is not None:
        milliseconds(lease)
    return lease


class RedisPyLock(Adapted):
    """An adapter for redis-py's own lock. Its errors become those of locks.errors."""

    slug = "redis-py"
    title = "redis-py's Lock"
    source = "redis-py, redis.lock.Lock (F6)"
    guarantees = "as `token`, if a lease is given (the library's default is none)"
    breaks_when = "`token` breaks; without a lease, a crashed holder keeps the lock for ever"
    round_trips = "1 + 1"
    lease_step = 0.001
    withstands = TokenLock.withstands
    fails: ClassVar[dict[str, str]] = TokenLock.fails
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    def __init__(self, name: str, *, redis: Redis, lease: float | None = 5.0, poll: float = 0.1) -> None:
        """Seconds: `lease` (the library's `timeout`; its default None means no lease), `poll` (its `sleep`)."""
        super().__init__(name)
        client, lease, poll = answering(redis), checked_lease(lease), checked_poll(poll)
        self._adapt(lambda: client.lock(self.name, timeout=lease, sleep=poll))

    def acquire(self, timeout: float | None = None) -> bool:
        with typed_errors(self.name):
            return bool(self._lock.acquire(blocking_timeout=checked_wait(timeout)))

    def release(self) -> None:
        """Raises LockNotHeld if this thread holds nothing, LockLost if the lease had already ended."""
        with self._holding("release"):
            self._lock.release()

    def extend(self) -> None:
        """Raises LockNotHeld if this thread holds nothing, LockLost if the lease had already ended, and
        NotImplementedError if there is no lease."""
        with self._holding("extend"):
            if self._lock.timeout is None:
                raise NotImplementedError(
                    f"{self.name}: it was taken without a lease, so there is none to extend"
                )
            self._lock.reacquire()

    @contextmanager
    def _holding(self, verb: str) -> Iterator[None]:
        if self.token is None:
            raise LockNotHeld(f"{self.name}: {verb} by a thread that does not hold it")
        try:
            with typed_errors(self.name):
                yield
        except LockNotOwnedError as error:
            self._lock.local.token = None
            raise LockLost(f"{self.name}: the lease had ended; re-read what was written inside") from error

    @property
    def token(self) -> bytes | None:  # type: ignore[override]  # the library's, of this thread
        token: bytes | None = getattr(self._lock.local, "token", None)
        return token

    @property
    def held(self) -> bool:
        """Whether this thread holds it. True until the release, even when the lease is over: the library does not look
        at the clock."""
        return self.token is not None
