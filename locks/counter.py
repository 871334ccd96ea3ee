"""counter: INCR, and each worker that gets a number up to `permits` is inside. One attempt, no waiting.

    A: INCR lock → 1: inside, read 100
    B:                        INCR lock → 2: refused; the 2 stays
    A: write 110, release: from now on A's template writes its keys as JSON
    A: DEL "lock" → 0                                the quotes belong to the name: this key was never there
    C:                        INCR lock → 3: refused, and so is everyone who has released nothing yet
    A: INCR "lock" → 1: inside again                 under a lock of its own

    init() was meant to set 0 with a lease of 30 s. Its third argument is SETRANGE's offset:
    A: SETRANGE "lock" 30000 0 → 30001               30 kB of zero bytes
    A: INCR "lock" → error: not an integer           nobody can acquire until someone deletes the key

Guarantees   none beyond the first section. Until somebody calls init() or release(), only one caller is inside.
Breaks when  it is used twice. init() and release() change the key serializer of their process's template, and
             acquire() does not: the lock has one name before and another after. The first release deletes nothing,
             so a process that comes later is refused for ever. Two processes of which one has released are inside
             together. What breaks `counter-one-name` breaks it too.
Costs        1 round trip to acquire, 1 to release.
Source       the daily-job article, version 2 (C4 to C7). `counter-one-name` is the same with one serializer.
"""

from __future__ import annotations

from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, NO_LEASE, NO_RENEWER, Lock
from locks.hazards import NONE
from locks.timing import checked_wait, milliseconds

NOBODY_WAITS = dict.fromkeys(("waiter-crash", "waiter-cancelled", "fairness"), "nobody waits: one attempt")
OTHER_KEY = "its first release deletes another key than its acquire counted"


class CounterLock(Lock):
    """INCR ≤ permits, without owners and leases, under a name that depends on what was called before."""

    slug = "counter"
    title = "INCR up to a number of permits"
    source = "C4, C5, C6, C7: a counter with INCR"
    guarantees = "mutual exclusion until the first release"
    breaks_when = "it is released once: init and release use another key than acquire did; init() is called"
    round_trips = "1 + 1"
    withstands = NONE
    fails: ClassVar[dict[str, str]] = {
        "wait-time": "nobody waits: one attempt",
        **dict.fromkeys(
            ("mutual-exclusion", "reentrancy", "server-restart", "failover", "acquire-repeated"), OTHER_KEY
        ),
        **dict.fromkeys(("holder-crash", "lost-reply", "release-repeated"), OTHER_KEY),
    }
    not_applicable: ClassVar[dict[str, str]] = (
        AS_PUBLISHED | NO_LEASE | NO_RENEWER | NO_FENCING | NOBODY_WAITS
    )

    def __init__(self, name: str, *, redis: Redis, permits: int = 1, lease: float = 30.0) -> None:
        """`permits`: how many may be inside. `lease`: seconds, which init() takes for an offset."""
        super().__init__(name)
        self.redis, self.permits, self.lease = redis, permits, milliseconds(lease)
        self._held = False
        self._as_json = False

    @property
    def key(self) -> str:
        """The name as the template's key serializer writes it at this moment. The template is this object."""
        return f'"{self.name}"' if self._as_json else self.name

    def init(self) -> None:
        """Meant: count 0, lease `lease`. Done: "0" is written `lease` bytes (not milliseconds) into the value."""
        self._as_json = True
        self.redis.setrange(self.key, self.lease, "0")

    def acquire(self, timeout: float | None = None) -> bool:
        """One attempt, whatever `timeout` says, as published. A refused caller has counted all the same."""
        checked_wait(timeout)
        self._held = int(self.redis.incr(self.key)) <= self.permits
        return self._held

    def release(self) -> None:
        self._as_json = True
        self._held = False
        self.redis.delete(self.key)

    @property
    def held(self) -> bool:
        return self._held
