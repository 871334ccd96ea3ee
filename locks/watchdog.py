"""watchdog: SETNX with a lease, and a thread that extends it while the work goes on.

    A: SET lock A:uuid NX PX 5000 → OK     A's thread looks every 300 ms, extends when under 1 s is left
    A: (paused past the lease)
    B:                    SET lock B:uuid NX PX 5000 → OK
    A's thread: PTTL lock → 900, PEXPIRE lock 5000       it extends B's lock: it never asks whose it is
    A: GET lock → A:uuid  … expires, B acquires …  DEL lock     B's lock is deleted: check and delete are two

Guarantees   mutual exclusion while the holder's process runs, its renewal reaches the server, and the server forgets
             nothing; a crashed holder's lock ends with its lease.
Breaks when  the holder is paused past the lease, or cut off, or one error ends its thread (two holders); a thread
             that lives then extends a stranger's lock; a release that was overtaken between GET and DEL deletes its
             successor's lock, and so does a DEL that the client sends again because its reply was lost (redis-py's
             usual one does); a failover loses the key.
Costs        1 round trip to acquire (polled every 1 s), 2 to release, 1 each 300 ms for the thread.
Source       the hot-account article (A15, A16): lease 5 s, a look each 300 ms, extended below 1 s.
"""

from __future__ import annotations

import threading
import uuid
from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.timing import milliseconds, poll_until


class WatchdogLock(Lock):
    """SETNX with a lease and a renewing thread, released by get-then-delete, as the article has it."""

    slug = "watchdog"
    title = "SETNX with a watchdog thread"
    source = "A15, A16: the daemon thread"
    guarantees = (
        "mutual exclusion while the holder runs and its renewal reaches a server that forgets nothing"
    )
    breaks_when = (
        "the holder is paused or cut off; one error ends its renewal; release is overtaken before its DEL"
    )
    round_trips = "1 + 2, and 1 each 300 ms"
    lease_step = 0.001
    renews = True
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.OVERRUN,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.STAMPEDE,
        Hazard.CONNECTIONS,
    }
    fails: ClassVar[dict[str, str]] = {
        "release-overtaken": "anything fits between the GET and the DEL",
        "renewal-of-anothers": "the thread never asks whose lock it extends",
        "acquire-repeated": "SET NX refuses it what it has set itself: it waits for its own lease",
        "release-repeated": "DEL does not ask whose lock it is",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_FENCING

    def __init__(
        self,
        name: str,
        *,
        redis: Redis,
        lease: float = 5.0,
        poll: float = 1.0,
        look: float = 0.3,
        below: float = 1.0,
    ) -> None:
        """Seconds: `lease` of the key, `poll` between attempts, `look` between two looks of the thread,
        which extends when less than `below` is left."""
        super().__init__(name)
        self.redis, self.lease, self.poll, self.look, self.below = (
            redis,
            milliseconds(lease),
            poll,
            look,
            below,
        )
        self._stop: threading.Event | None = None

    def acquire(self, timeout: float | None = None) -> bool:
        value = f"{threading.get_ident()}:{uuid.uuid4()}".encode()
        if not poll_until(
            lambda: bool(self.redis.set(self.name, value, nx=True, px=self.lease)), self.poll, timeout
        ):
            return False
        self.token = value
        self._stop = threading.Event()
        threading.Thread(target=self._watch, args=(self._stop,), daemon=True).start()
        return True

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(self.look):
            left = self.redis.pttl(self.name)
            if 0 <= left < self.below * 1000:  # whose lock is it? The article does not ask.
                self.redis.pexpire(self.name, self.lease)

    def release(self) -> None:
        try:
            if self.redis.get(self.name) == self.token:
                self.redis.delete(self.name)  # anything fits between the GET and the DEL
        finally:
            self.token = None
            if self._stop is not None:
                self._stop.set()
                self._stop = None

    @property
    def held(self) -> bool:
        return self.token is not None
