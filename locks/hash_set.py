"""hash-set: HSET and EXPIRE to lock, DEL to unlock, and no check at all.

    A: HSET lock locked 1 → 1, EXPIRE lock 30
    B:                            HSET lock locked 1 → 0, EXPIRE lock 30      HSET overwrites: both are inside
    A: read 100                   read 100
    A: write 110, DEL lock
    B:                            write 120                                   A's 10 are gone

Guarantees   nothing: it never refuses anyone.
Breaks when  two clients want the lock at once. A crash between HSET and EXPIRE leaves the hash for ever. Nobody
             notices, because nobody looks.
Costs        2 round trips to acquire, 1 to release.
Source       the daily-job article (C3): put into a hash, expire, delete.
"""

from __future__ import annotations

from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_EXTENSION, NO_FENCING, NO_RENEWER, Lock
from locks.hazards import NONE
from locks.timing import whole_seconds

NEVER_REFUSES = "it never refuses: every acquire succeeds at once"


class HashSetLock(Lock):
    """A hash that every caller writes and none reads."""

    slug = "hash-set"
    title = "HSET + EXPIRE, no check"
    source = "C3: put into a hash, expire"
    guarantees = "nothing"
    breaks_when = "two clients want it at once"
    round_trips = "2 + 1"
    lease_step = 1.0
    withstands = NONE
    fails: ClassVar[dict[str, str]] = dict.fromkeys(
        (
            "mutual-exclusion",
            "race",
            "lease-expiry",
            "foreign-release",
            "release-after-loss",
            "release-repeated",
            "reentrancy",
            "server-restart",
            "failover",
        ),
        NEVER_REFUSES,
    )
    not_applicable: ClassVar[dict[str, str]] = (
        AS_PUBLISHED
        | NO_EXTENSION
        | NO_RENEWER
        | NO_FENCING
        | dict.fromkeys(
            ("waiter-crash", "waiter-cancelled", "waiter-gives-up", "wait-time", "fairness"),
            f"nobody waits: {NEVER_REFUSES}",
        )
    )

    def __init__(self, name: str, *, redis: Redis, lease: float = 30.0) -> None:
        """`lease`: whole seconds, for EXPIRE."""
        super().__init__(name)
        self.redis, self.lease = redis, whole_seconds(lease)
        self._held = False

    def acquire(self, timeout: float | None = None) -> bool:
        self.redis.hset(self.name, "locked", 1)  # the reply (1: new, 0: overwritten) is ignored
        self.redis.expire(self.name, self.lease)
        self._held = True
        return True

    def release(self) -> None:
        self._held = False
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self._held
