"""setnx-ttl: SET NX with a lease. The `finally` around all of it deletes the key, unless the thread is interrupted.

    A: SET lock 1 NX PX 5000 → OK, read 100 (the business takes 6 s)
    server: the lease ends
    B:                              SET lock 1 NX PX 5000 → OK, read 100
    A: write 110, DEL lock                                   this deletes B's lock
    C:                                                       SET lock 1 NX PX 5000 → OK: a third one is inside
    B:                              write 120                A's 10 are gone

    The flag answers the wrong question. A sleep that is interrupted clears the flag of its thread:
    A: SET lock 1 NX PX 5000 → OK, read 100
    B:                              SET … → nil, sleep 1 s … interrupted (deploy, Ctrl-C, time limit)
    B:                              finally: not flagged, DEL lock          this deletes A's lock
    C:                              SET … → OK, read 100, write 120         and A: write 110
    whereas a holder that is interrupted at work keeps the flag:
    A: SET lock 1 NX PX 5000 → OK, read 100 … interrupted
    A: finally: flagged, no DEL                              its own lock stays until the lease ends

Guarantees   mutual exclusion while every section fits its lease and no waiter is interrupted. A crashed holder's
             lock ends with its lease.
Breaks when  a section outlasts its lease (two holders, then a third). A waiter is interrupted, or a waiter's
             reply gets lost: it deletes the holder's lock. A holder is interrupted: everyone waits for the rest
             of its lease. Anyone's release deletes the key. A failover or a restart loses it.
Costs        1 round trip to acquire (again every 1 s while waiting), 1 to release.
Source       the hot-account article (A12): lease 5 s, poll 1 s, `finally` with a look at the interrupt flag. Here a
             KeyboardInterrupt is the interruption, and one that leaves the section is the flag that is still set.
"""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_EXTENSION, NO_FENCING, NO_RENEWER, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.timing import checked_wait, milliseconds, poll_until


class SetnxTtlLock(Lock):
    """SET NX with a lease, and a DEL that asks for the interrupt flag and not for the owner."""

    slug = "setnx-ttl"
    title = "SETNX with a lease, deleted by anyone"
    source = "A12: SETNX with an expiry"
    guarantees = "mutual exclusion while every section fits its lease and no waiter is interrupted"
    breaks_when = "a section outlasts its lease: it deletes its successor's lock; a waiter is interrupted"
    round_trips = "1 + 1"
    lease_step = 0.001
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.RENEWAL_DIES,
        Hazard.RENEWAL_LIVES,
        Hazard.STAMPEDE,
    }
    fails: ClassVar[dict[str, str]] = {
        "foreign-release": "DEL does not ask whose lock it is",
        "release-after-loss": "DEL does not ask whose lock it is",
        "release-repeated": "DEL does not ask whose lock it is",
        "waiter-cancelled": "the waiting loop stands inside the try: its finally deletes the holder's lock",
        "acquire-repeated": "SET NX refuses it what it has set itself: it waits for its own lease",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_EXTENSION | NO_RENEWER | NO_FENCING

    def __init__(self, name: str, *, redis: Redis, lease: float = 5.0, poll: float = 1.0) -> None:
        """Seconds: `lease` of the key, `poll` between two attempts (the article: 5 and 1)."""
        super().__init__(name)
        self.redis, self.lease, self.poll = redis, milliseconds(lease), poll
        self._held = False

    def acquire(self, timeout: float | None = None) -> bool:
        checked_wait(timeout)  # not of the article: a wrong argument is no interruption
        try:
            self._held = poll_until(self._attempt, self.poll, timeout)
        except BaseException:
            self.release()  # as published: the waiting loop stands inside the `try`
            raise
        return self._held

    def _attempt(self) -> bool:
        return bool(self.redis.set(self.name, 1, nx=True, px=self.lease))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As published: a holder that was interrupted at work does not delete its lock."""
        if isinstance(error, KeyboardInterrupt):
            self._held = False
            return
        super().__exit__(kind, error, trace)

    def release(self) -> None:
        self._held = False
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self._held
