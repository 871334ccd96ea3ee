"""reentrant: a hash of owner → count, so that its owner may enter again. The owner is a uuid of the object.

    thread 1: lock.acquire → HINCRBY lock 5e1b 1 → 1, read 100
    thread 2: lock.acquire → HEXISTS lock 5e1b → 1, HINCRBY lock 5e1b 1 → 2      the same object, the same uuid
    thread 2: read 100
    thread 1: write 110
    thread 2: write 120                                                          thread 1's 10 are gone

Guarantees   mutual exclusion between objects, while the holder's process runs, its renewal reaches the server, and
             the server forgets nothing. A crashed holder's lock ends with its lease. Nobody releases or renews
             another's lock.
Breaks when  threads share the object: they enter each other's section. The holder is paused past the lease or cut
             off, or one error ends its renewal. The server loses the key.
             Each entry starts another renewal thread. No thread has a cap, and no release stops one. If the business
             thread dies without a release, its lock lives as long as the process. Every half lease, a thread checks
             whether the object is inside. So threads pile up with nested entries. They also pile up with one section
             after another: those of the last 15 s, and any that find the object inside again. A client that repeats
             an acquire after a lost reply (redis-py's default) has entered twice but leaves once: the lock is renewed
             until its process ends. `unit` is ignored.
Costs        1 round trip to acquire (one more every 50 ms while waiting), 1 to release, 1 every half lease for each
             entry.
Source       the lock-series article (D4): HINCRBY, PEXPIRE, a thread that extends. Its unlock is ours. The article's
             threads are ordinary ones and keep their process alive; these are daemons.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, Lock
from locks.errors import LockNotHeld
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.server import LuaScript
from locks.timing import milliseconds, poll_until


class ReentrantLock(Lock):
    """A hash with a count of entries. The object alone identifies the owner."""

    slug = "reentrant"
    title = "Reentrant lock on a hash"
    source = "D4: the reentrant lock; its unlock is ours"
    guarantees = (
        "mutual exclusion between objects while the holder runs, its renewal reaches the server, and the server"
        " forgets nothing; nested acquires by its owner"
    )
    breaks_when = "threads share the object; the holder is paused or cut off; one error ends its renewal"
    round_trips = "1 + 1, and 1 every half lease for each entry"
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
        "reentrancy": "its identity is the object's uuid: threads that share the object are one owner",
        "acquire-repeated": "HINCRBY counts it twice, but it leaves once",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_FENCING

    acquire_script = LuaScript("reentrant_acquire.lua")
    release_script = LuaScript("reentrant_release.lua")
    renew_script = LuaScript("reentrant_renew.lua")

    def __init__(
        self, name: str, *, redis: Redis, lease: float = 30.0, poll: float = 0.05, unit: str = "seconds"
    ) -> None:
        """Seconds: `lease`, `poll` between two attempts. `unit` is ignored, as published: lease=500 with
        unit="milliseconds" is 500 s."""
        super().__init__(name)
        self.redis, self.lease, self.poll = redis, milliseconds(lease), poll
        self.token = uuid.uuid4().hex.encode()
        self._entries = 0

    def acquire(self, timeout: float | None = None) -> bool:
        if not poll_until(self._attempt, self.poll, timeout):
            return False
        self._entries += 1
        threading.Thread(target=self._renew, daemon=True).start()  # one more for each entry
        return True

    def _attempt(self) -> bool:
        return bool(self.acquire_script(self.redis, [self.name], [self.token or b"", self.lease]))

    def _renew(self) -> None:
        while True:
            time.sleep(self.lease / 2000)
            if not self.renew_script(self.redis, [self.name], [self.token or b"", self.lease]):
                return

    def release(self) -> None:
        """Raises LockNotHeld if the hash does not name this object (never held, or lost)."""
        self._entries = max(0, self._entries - 1)
        if self.release_script(self.redis, [self.name], [self.token or b""]) is None:
            self._entries = 0
            raise LockNotHeld(f"{self.name}: this object does not hold it")

    @property
    def held(self) -> bool:
        return self._entries > 0
