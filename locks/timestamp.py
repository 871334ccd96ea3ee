"""timestamp: the key holds the time at which the lock ends. A client that finds this time past deletes the key.

    (C crashed between SETNX and EXPIRE: the key has no expiry on the server, but its time passes)
    A: GET lock → a time that is past
    B:                            GET lock → the same time that is past
    B:                            DEL lock → 1, SETNX lock → 1, read 100       B is inside
    A: DEL lock → 1                                      it deletes B's lock: the GET was long ago
    A: SETNX lock → 1, read 100                                                A is inside too
    B:                            write 120
    A: write 110                                                               B's 20 are gone

Guarantees   mutual exclusion between clients whose clocks agree, while no lock is ever left behind, every section fits
             its lease, and the server forgets nothing. A crash between SETNX and EXPIRE heals, because the time in
             the value passes.
Breaks when  two clients find the same dead lock (both delete it, both win). A client's clock runs ahead (it deletes a
             live lock). A section or a pause outlasts the lease. The server loses the key. Any client releases.
             Acquire swallows every exception. After a lost reply or a failed EXPIRE it reports "not acquired" while
             the lock stays held, and its caller waits for itself.
Costs        3 round trips to acquire (GET, SETNX, EXPIRE; 4 with a DEL), 1 to release.
Source       the lock-table article (E3): the expiry time is the value. It publishes no release: this one is ours.
"""

from __future__ import annotations

import time
from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_EXTENSION, NO_FENCING, NO_RENEWER, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.timing import poll_until, whole_seconds


class TimestampLock(Lock):
    """The value holds the lease's end by the client's clock. The check and the delete are two commands."""

    slug = "timestamp"
    title = "SETNX with the expiry time in the value"
    source = "E3: the expiry time in the value; its release is ours"
    guarantees = (
        "mutual exclusion between clients whose clocks agree, while no lock is left behind,"
        " sections fit the lease, and the server forgets nothing"
    )
    breaks_when = (
        "two clients find the same dead lock; a client's clock is ahead; a reply is lost;"
        " a section or a pause outlasts the lease"
    )
    round_trips = "3 + 1"
    lease_step = 1.0
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.RENEWAL_DIES,
        Hazard.RENEWAL_LIVES,
        Hazard.WAITER_INTERRUPTED,
        Hazard.STAMPEDE,
    }
    fails: ClassVar[dict[str, str]] = {
        "race": "two clients find the same dead lock: both delete it, and both win",
        "foreign-release": "DEL does not ask whose lock it is",
        "release-after-loss": "DEL does not ask whose lock it is",
        "release-repeated": "DEL does not ask whose lock it is",
        "lost-reply": "the exception is swallowed: acquire reports False, and the lock stays held",
        "acquire-repeated": "SETNX refuses the key that the caller itself set: it waits for its own lease",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_EXTENSION | NO_RENEWER | NO_FENCING

    def __init__(self, name: str, *, redis: Redis, lease: float = 5.0, poll: float = 0.1) -> None:
        """`lease`: whole seconds, for EXPIRE. `poll`: seconds between two attempts."""
        super().__init__(name)
        self.redis, self.lease, self.poll = redis, whole_seconds(lease), poll
        self._held = False

    def acquire(self, timeout: float | None = None) -> bool:
        self._held = poll_until(self._attempt, self.poll, timeout)
        return self._held

    def _attempt(self) -> bool:
        try:
            ends = self.redis.get(self.name)
            if ends is not None and float(ends) < time.time():
                self.redis.delete(self.name)  # nobody checks that it is still the value that was read
            if not self.redis.setnx(self.name, repr(time.time() + self.lease)):
                return False
            self.redis.expire(self.name, self.lease)
        except Exception:  # noqa: BLE001  as published
            return False
        return True

    def release(self) -> None:
        self._held = False
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self._held
