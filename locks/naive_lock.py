"""naive-lock: check whether the key exists; if not, set it.

    A: GET lock → nil
    B:                    GET lock → nil
    A: SET lock 1
    B:                    SET lock 1          both are inside
    A: read 100, write 110
    B:                    read 100, write 120       A's 10 are gone
    A: DEL lock
    B:                    DEL lock

Guarantees   nothing. It narrows the window from the whole section to the time between GET and SET,
             so tests rarely see the race that production does see.
Breaks when  two clients GET before either SETs (contention alone suffices). A holder that crashes, or that loses a
             reply, leaves the key for ever. A release deletes whatever key is there.
Costs        GET + SET to acquire, DEL to release: 3 round trips, and a poll every 500 ms while waiting.
Source       the hot-account article (A10): get the key; if it is absent, set it.
"""

from __future__ import annotations

from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, NO_LEASE, NO_RENEWER, Lock
from locks.timing import poll_until


class NaiveLock(Lock):
    """Get, then set: the check and the act are two commands, and anything can happen between them."""

    slug = "naive-lock"
    title = "Get, then set"
    source = "A10: get, then set"
    guarantees = "nothing"
    breaks_when = "two clients check before either sets"
    round_trips = "2 + 1"
    fails: ClassVar[dict[str, str]] = {
        "race": "two clients GET before either SETs",
        "foreign-release": "DEL does not ask whose lock it is",
        "release-after-loss": "DEL does not ask whose lock it is",
        "release-repeated": "DEL does not ask whose lock it is",
        "holder-crash": "no lease",
        "lost-reply": "no lease: what a lost reply leaves behind stays for ever",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_LEASE | NO_RENEWER | NO_FENCING

    def __init__(self, name: str, *, redis: Redis, poll: float = 0.5) -> None:
        """`poll`: seconds between two checks (A10: 0.5)."""
        super().__init__(name)
        self.redis, self.poll = redis, poll
        self._held = False

    def acquire(self, timeout: float | None = None) -> bool:
        return poll_until(self._attempt, self.poll, timeout)

    def _attempt(self) -> bool:
        if self.redis.get(self.name) is not None:
            return False
        self.redis.set(self.name, 1)  # overwrites a lock that was taken between the GET and the SET
        self._held = True
        return True

    def release(self) -> None:
        self._held = False
        self.redis.delete(self.name)

    @property
    def held(self) -> bool:
        return self._held
