"""setnx: set the key only if it is not there, in one command.

    A: SETNX lock 1 → 1
    B:                    SETNX lock 1 → 0 … again every 100 ms
    A: read, write, DEL lock
    B:                    SETNX lock 1 → 1

Guarantees   mutual exclusion, as long as nobody dies and the server forgets nothing.
Breaks when  the holder crashes: there is no lease, so everyone waits for ever. A failover that loses the
             key lets a second holder in. Anyone's release deletes the key.
Costs        1 round trip to acquire, 1 to release, and a poll each 100 ms while waiting.
Source       the first article's second attempt: `while not redis.setnx(key, 1): sleep(0.1)`.
"""

from __future__ import annotations

import time

from redis import Redis

from locks.base import Lock
from locks.hazards import Hazard


class SetnxLock(Lock):
    """SETNX without a lease: atomic, and permanent if its holder dies."""

    slug = "setnx"
    title = "SETNX, no lease"
    source = "first article: SETNX"
    guarantees = "mutual exclusion while nobody crashes and the server forgets nothing"
    breaks_when = "the holder crashes: the lock stays for ever"
    round_trips = "1 + 1"
    withstands = frozenset({Hazard.CONTENTION, Hazard.PAUSE, Hazard.OVERRUN})

    def __init__(self, name: str, *, redis: Redis, poll: float = 0.1) -> None:
        """`poll`: seconds between two attempts (the article: 0.1)."""
        super().__init__(name)
        self.redis, self.poll = redis, poll
        self._held = False

    def acquire(self, timeout: float | None = None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.redis.setnx(self.name, 1):
            if deadline is not None and time.monotonic() + self.poll > deadline:
                return False
            time.sleep(self.poll)
        self._held = True
        return True

    def release(self) -> None:
        self._held = False
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self._held
