"""watchdog-lua: the watchdog with Lua for acquire and release. Only a successful release stops its thread.

    A: acquire → 1                       A's thread looks every 300 ms, and extends below 1 s
    A: (paused past the lease)
    B:                    acquire → 1
    A: compare-and-delete → 0            no longer A's, so nobody stops the thread: it is an orphan
    A's thread: PTTL lock → 900, EXPIRE lock 5        it extends B's lock, and that of everyone after B
    B:                    (crashes)
    A's thread: EXPIRE lock 5, EXPIRE lock 5, …       B's lock never ends: everyone waits for ever

Guarantees   mutual exclusion while the holder's process runs, its renewal reaches the server, and the server forgets
             nothing. A release never deletes another's lock.
Breaks when  the holder is paused past the lease or is cut off, an error ends its thread, or the server loses the
             key: two holders. After any lost lock the orphaned thread keeps every successor's lock alive. If one
             of them crashes, its lock never ends. The same happens after a release whose reply is lost. The thread
             is an ordinary one, so an orphan keeps its process from ending, too.
Costs        1 round trip to acquire (again every 1 s while waiting), 1 to release, 1 every 300 ms for the thread.
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
    """Acquire and release in Lua, and a thread that can outlive its lock."""

    slug = "watchdog-lua"
    title = "Lua acquire and release with a watchdog thread"
    source = "A17: the daemon thread, with Lua"
    guarantees = (
        "mutual exclusion while the holder runs and its renewal reaches a server that forgets nothing"
    )
    breaks_when = (
        "the holder is paused or cut off; its orphaned thread then keeps others' locks alive for ever;"
        " an error ends its renewal"
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
        """Seconds: `lease` (whole ones, for EXPIRE), `poll` between two attempts, `look` between two looks of the
        thread. The thread extends when less than `below` is left."""
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
        # An ordinary thread, as in Java: it is a daemon only where the thread that starts it is one.
        threading.Thread(target=self._watch, args=(self._stop,)).start()
        return True

    def _watch(self, stop: threading.Event) -> None:
        while not stop.is_set():
            # No key gives -2, a key without a lease -1. Whose lock is it? The article does not ask.
            if self.redis.pttl(self.name) < self.below * 1000:
                self.redis.expire(self.name, self.lease)
            stop.wait(self.look)

    def release(self) -> None:
        value, self.token = self.token or b"", None
        if self.release_script(self.redis, [self.name], [value]):
            self._stop.set()  # as published: only here, so after a lost lock the thread goes on

    @property
    def held(self) -> bool:
        return self.token is not None
