"""try-lock: spin until the wait time is over, then `finally: unlock()`, whether the lock was taken or not.

    A: SET lock a7f3 NX PX 10000 → OK, read 100
    B:                                SET … → nil, SET … → nil, SET … → nil, … for 5 s: "busy"
    B:                                finally: DEL lock → 1        B never held the lock; it was A's
    C:                                SET … → OK, read 100
    A: write 110                      C: write 120                 A's 10 are gone

    The published call is tryLock(5000, MILLISECONDS), and the published method has three parameters, the lease
    among them. The listing does not compile. The lease of 10 s here is ours.

Guarantees   mutual exclusion while every section fits its lease, nobody waits as long as the wait time, and the
             server forgets nothing.
Breaks when  a waiter gives up: it deletes the holder's lock. So does a late holder, and anyone's release. A section
             or a pause outlasts the lease. The server loses the key, or its clock jumps. The spin loads server and
             client.
Costs        1 round trip to acquire, 1 to release; while waiting, as many as the connection carries.
Source       the lock-series article (D5, D6). Its unlock is not published: here it is a plain DEL. In
             `try-lock-checked` it checks whose lock it is.
"""

from __future__ import annotations

import secrets
from typing import ClassVar, Self

from redis import Redis

from locks.base import AS_PUBLISHED, NO_EXTENSION, NO_FENCING, NO_RENEWER, Lock
from locks.errors import LockTimeout
from locks.hazards import NONE
from locks.server import answering
from locks.timing import checked_wait, milliseconds, poll_until


class TryLock(Lock):
    """A busy spin with a wait time. `finally` unlocks even what was not taken, by a plain DEL."""

    slug = "try-lock"
    title = "Spin, then unlock in any case (DEL)"
    source = "D5, D6: tryLock, and unlock in any case; its unlock is ours"
    guarantees = (
        "mutual exclusion while sections fit the lease, nobody waits as long as the wait time,"
        " and the server forgets nothing"
    )
    breaks_when = (
        "a waiter gives up: its finally deletes the holder's lock; section or pause outlasts the lease"
    )
    round_trips = "1 + 1"
    lease_step = 0.001
    withstands = NONE
    fails: ClassVar[dict[str, str]] = {
        "waiter-gives-up": "finally: unlock(), though not held",
        "foreign-release": "DEL does not ask whose lock it is",
        "release-after-loss": "DEL does not ask whose lock it is",
        "release-repeated": "DEL does not ask whose lock it is",
        "waiter-cancelled": "finally: unlock(), though not held",
        "acquire-repeated": "SET NX refuses it what it has set itself: it waits for its own lease",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "spinning: the first to ask after the release gets it",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_EXTENSION | NO_RENEWER | NO_FENCING

    def __init__(
        self, name: str, *, redis: Redis, lease: float = 10.0, wait: float = 5.0, poll: float = 1e-6
    ) -> None:
        """Seconds: `lease` of the key, `wait` before `with` gives up, `poll` between two attempts (it spins)."""
        super().__init__(name)
        self.redis, self.lease, self.wait = answering(redis), milliseconds(lease), checked_wait(wait)
        self.poll = poll

    def __enter__(self) -> Self:
        """Raises LockTimeout when the lock was busy for `wait` seconds, and unlocks it all the same."""
        try:
            if not self.acquire(self.wait):
                raise LockTimeout(f"{self.name}: busy")
        except BaseException:
            self.release()  # the published `finally`: not held, unlocked nevertheless
            raise
        return self

    def acquire(self, timeout: float | None = None) -> bool:
        token = secrets.token_hex(16).encode()
        if not poll_until(lambda: self._attempt(token), self.poll, self.wait if timeout is None else timeout):
            return False
        self.token = token
        return True

    def _attempt(self, token: bytes) -> bool:
        return bool(self.redis.set(self.name, token, nx=True, px=self.lease))

    def release(self) -> None:
        self.token = None
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self.token is not None
