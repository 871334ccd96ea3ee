"""token: SET NX PX with a random value. Every later command first checks whose lock it is.

    A: SET lock a7f3 NX PX 10000 → OK
    B:                                 SET lock 91c2 NX PX 10000 → nil … again every 50 ms
    A: read 100 (paused 11 s: garbage collection, swap, a stopped container)
    server: the lease ends
    B:                                 SET lock 91c2 NX PX 10000 → OK, read 100, write 120
    A: write 110                                                        B's 20 are gone
    A: compare-and-delete a7f3 → 0: LockLost. B's lock stays, the money does not come back.

Guarantees   mutual exclusion while the section is shorter than the lease and the server forgets nothing. A crashed
             holder's lock ends with its lease. Nobody releases or extends another's lock, and a forked child does not
             release its parent's. A holder that was too late is told (LockLost), after the fact.
Breaks when  the section, or a pause inside it, outlasts the lease: the holder writes without the lock, and nothing
             in Redis can stop it (see `fenced`). A failover or a restart that loses the key lets a second holder in.
             A jump of the server's clock ends the lease early. The order of the waiters is luck.
             A client that repeats commands by itself (redis-py's default) may, after a lost reply, meet its own
             command: an acquire waits for its own lease (`fenced`, `semaphore`, `token-pubsub` and `token-queue`
             recognise their token), and a release that succeeded reports LockLost. Neither loses money.
Costs        1 round trip to acquire (one more every `poll` while waiting), 1 to release, 1 to extend.
Source       the Redis manual, "Distributed Locks with Redis": the correct single-instance lock.
"""

from __future__ import annotations

import secrets
import time
from typing import ClassVar

from redis import Redis

from locks.base import NO_FENCING, NO_RENEWER
from locks.errors import LockLost
from locks.hazards import OWNED_LEASE, Hazard
from locks.one_holding import OneHolding
from locks.server import LuaScript, answering, typed_errors
from locks.timing import milliseconds, poll_until


class TokenLock(OneHolding):
    """A random value identifies the owner. Lua makes the check and the act one command."""

    slug = "token"
    title = "SET NX PX with a token, Lua compare-and-delete"
    source = "B3, B5, C8: token and checked release; Redis manual (F1)"
    guarantees = (
        "mutual exclusion while the section fits the lease; a late release harms nobody and is reported"
    )
    breaks_when = "a section or a pause outlasts the lease; the server loses the key, or its clock jumps"
    round_trips = "1 + 1"
    lease_step = 0.001
    withstands = OWNED_LEASE | {Hazard.RENEWAL_DIES, Hazard.STAMPEDE, Hazard.CONNECTIONS}
    fails: ClassVar[dict[str, str]] = {
        "fairness": "polling: the first to ask after the release gets it",
        "acquire-repeated": "SET NX refuses the key that the caller itself set: it waits for its own lease",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
    }
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    release_script = LuaScript("token_release.lua")
    extend_script = LuaScript("token_extend.lua")

    def __init__(self, name: str, *, redis: Redis, lease: float = 10.0, poll: float = 0.05) -> None:
        """Seconds: `lease` of the key, `poll` between two attempts."""
        super().__init__(name)
        self.redis, self.lease, self.poll = answering(redis), milliseconds(lease), poll

    def acquire(self, timeout: float | None = None) -> bool:
        token = secrets.token_hex(16).encode()
        with typed_errors(self.name):
            return poll_until(lambda: self._attempt(token), self.poll, timeout)

    def _attempt(self, token: bytes) -> bool:
        asked = time.monotonic()  # the lease counts from before the command; the server starts it later
        if not self.redis.set(self.name, token, nx=True, px=self.lease):
            return False
        self._granted(token, asked + self.lease / 1000)
        return True

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, self.token = self._mine("release"), None
        with typed_errors(self.name):
            deleted = self.release_script(self.redis, [self.name], [token])
        if not deleted:
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )

    def extend(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, asked = self._mine("extend"), time.monotonic()
        with typed_errors(self.name):
            extended = self._start_again(token)
        if not extended:
            self.token = None
            raise LockLost(f"{self.name}: the lease ended before the extension; stop writing")
        self._valid_until = asked + self.lease / 1000

    def _start_again(self, token: bytes) -> bool:
        """Restart the lease. False: it had already ended."""
        return bool(self.extend_script(self.redis, [self.name], [token, self.lease]))
