"""watchdog-lua: the watchdog with Lua for acquire and release, its thread stopped only by a successful release.

    A: acquire → 1                       A's thread looks every 300 ms, extends when under 1 s is left
    A: (paused past the lease)
    B:                    acquire → 1
    A: compare-and-delete → 0            not A's any more, so the thread is not stopped: an orphan
    A's thread: PTTL lock → 900, EXPIRE lock 5        it extends B's lock, and that of everyone after B
    B:                    (crashes)
    A's thread: EXPIRE lock 5, EXPIRE lock 5, …       B's lock never ends: everyone waits for ever

Guarantees   mutual exclusion while the holder's process runs, its renewal reaches the server, and the server forgets
             nothing; a release never deletes another's lock.
Breaks when  the holder is paused past the lease, or cut off, or one error ends its thread, or the server loses the
             key (two holders). After any lost lock the orphaned thread keeps
             every successor's lock alive; if one of them crashes, its lock never ends. So it does after a
             release whose reply was lost.
Costs        1 round trip to acquire (again every 1 s while waiting), 1 to release, 1 each 300 ms for the thread.
Source       the hot-account article (A17): SETNX and EXPIRE in Lua, compare-and-delete in Lua.
"""

from __future__ import annotations

import threading
import uuid
from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.server import LuaScript
from locks.timing import poll_until, whole_seconds


class WatchdogLuaLock(Lock):
    """Lua acquire and release; a thread that outlives the lock it was made for."""

    slug = "watchdog-lua"
    title = "Lua acquire and release with a watchdog thread"
    source = "A17: the daemon thread, with Lua"
    guarantees = (
        "mutual exclusion while the holder runs and its renewal reaches a server that forgets nothing"
    )
    breaks_when = (
        "the holder is paused or cut off; its orphaned thread then keeps others' locks alive for ever;"
        " one error ends its renewal"
    )
    round_trips = "1 + 1, and 1 each 300 ms"
    lease_step = 1.0
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
        "renewal-of-anothers": "the thread never asks whose lock it extends, and a late release does not stop it",
        "acquire-repeated": "SETNX refuses it what it has set itself: it waits for its own lease",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_FENCING

    acquire_script = LuaScript("watchdog_lua_acquire.lua")
    release_script = LuaScript("token_release.lua")

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
        """Seconds: `lease` (whole ones, for EXPIRE), `poll` between attempts, `look` between two looks of the
        thread, which extends when less than `below` is left."""
        super().__init__(name)
        self.redis, self.lease, self.poll = redis, whole_seconds(lease), poll
        self.look, self.below = look, below
        self._stop = threading.Event()

    def acquire(self, timeout: float | None = None) -> bool:
        value = f"{threading.get_ident()}:{uuid.uuid4()}".encode()

        def attempt() -> bool:
            return bool(self.acquire_script(self.redis, [self.name], [value, self.lease]))

        if not poll_until(attempt, self.poll, timeout):
            return False
        self.token, self._stop = value, threading.Event()
        threading.Thread(target=self._watch, args=(self._stop,), daemon=True).start()
        return True

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(self.look):
            left = self.redis.pttl(self.name)
            if 0 <= left < self.below * 1000:  # whose lock is it? The article does not ask.
                self.redis.expire(self.name, self.lease)

    def release(self) -> None:
        value, self.token = self.token or b"", None
        if self.release_script(self.redis, [self.name], [value]):
            self._stop.set()  # as published: only here. After a lost lock the thread goes on.

    @property
    def held(self) -> bool:
        return self.token is not None
