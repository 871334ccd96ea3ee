"""setnx: set the key only if it is absent, in one command.

    A: SETNX lock 1 → 1
    B:                    SETNX lock 1 → 0 … again every 100 ms
    A: read, write, DEL lock
    B:                    SETNX lock 1 → 1

Guarantees   mutual exclusion, as long as nobody dies and the server forgets nothing.
Breaks when  the holder crashes, or the reply to its SETNX gets lost: there is no lease, so everyone waits for ever. A
             failover that loses the key lets a second holder in. Anyone's release deletes the key; so does a DEL
             that the client sends twice because its reply was lost (redis-py's default retry).
Costs        1 round trip to acquire, 1 to release, and 1 every 100 ms while waiting.
Source       the hot-account article (A11): try SETNX again every 100 ms.
"""

from __future__ import annotations

from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, NO_LEASE, NO_RENEWER, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.timing import poll_until


class SetnxLock(Lock):
    """SETNX without a lease: atomic, and permanent if its holder dies."""

    slug = "setnx"
    title = "SETNX, no lease"
    source = "A11: SETNX"
    guarantees = "mutual exclusion while nobody crashes and the server forgets nothing"
    breaks_when = "the holder crashes: the lock stays for ever"
    round_trips = "1 + 1"
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.PAUSE,
        Hazard.OVERRUN,
        Hazard.RENEWAL_DIES,
        Hazard.WAITER_INTERRUPTED,
        Hazard.CLOCK_JUMP,
        Hazard.STAMPEDE,
    }
    fails: ClassVar[dict[str, str]] = {
        "foreign-release": "DEL does not ask whose lock it is",
        "release-after-loss": "DEL does not ask whose lock it is",
        "release-repeated": "DEL does not ask whose lock it is",
        "holder-crash": "no lease",
        "lost-reply": "no lease: what a lost reply leaves behind stays for ever",
        "acquire-repeated": "SETNX refuses it what it has set itself: it waits for ever",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_LEASE | NO_RENEWER | NO_FENCING

    def __init__(self, name: str, *, redis: Redis, poll: float = 0.1) -> None:
        """`poll`: seconds between two attempts (the article: 0.1)."""
        super().__init__(name)
        self.redis, self.poll = redis, poll
        self._held = False

    def acquire(self, timeout: float | None = None) -> bool:
        self._held = poll_until(lambda: bool(self.redis.setnx(self.name, 1)), self.poll, timeout)
        return self._held

    def release(self) -> None:
        self._held = False
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self._held
