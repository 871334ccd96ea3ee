"""semaphore: a number of permits, each with an owner and a lease. With one permit it is a lock.

    permits 2:
    A: ZADD sem (now + lease) a7f3 → inside     B: ZADD sem (now + lease) 91c2 → inside
    C: ZCARD sem → 2: refused                   a refusal leaves nothing behind
    A: (crashes)                                its permit ends with its own lease, B's goes on
    C: drop what is over, ZADD sem … → inside

    and it breaks as `token` does:
    B: (paused past its lease)                  D: drop B's, ZADD sem → inside: with B, three write

Guarantees   at most `permits` holders while each section fits its lease and the server forgets nothing. A crashed
             holder's permit comes back when its lease ends. Nobody gives back another's permit.
Breaks when  a section or a pause outlasts the lease; the server loses the key, or its clock jumps.
Costs        1 round trip to acquire (one more every `poll` while waiting), 1 to release, 1 to extend.
Source       J. Carlson, "Redis in Action", 6.3 (with the server's time instead of the clients').
"""

from __future__ import annotations

import time
from typing import ClassVar

from redis import Redis

from locks.base import NO_FENCING, NO_RENEWER, without
from locks.errors import LockLost
from locks.server import LuaScript, typed_errors
from locks.token_lock import TokenLock


class SemaphoreLock(TokenLock):
    """Permits with owners and leases, on a sorted set."""

    slug = "semaphore"
    title = "Permits with owners and leases"
    source = 'J. Carlson, "Redis in Action" (F7)'
    guarantees = "at most `permits` holders while each section fits its lease"
    breaks_when = "a section or a pause outlasts the lease; the server loses the key, or its clock jumps"
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated")
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    acquire_script = LuaScript("semaphore_acquire.lua")
    extend_script = LuaScript("semaphore_extend.lua")

    def __init__(
        self, name: str, *, redis: Redis, permits: int = 1, lease: float = 10.0, poll: float = 0.05
    ) -> None:
        """`permits`: how many holders may be inside. Seconds: `lease` of a permit, `poll` between two attempts."""
        super().__init__(name, redis=redis, lease=lease, poll=poll)
        if not (type(permits) is int and permits >= 1):
            raise ValueError(f"permits={permits!r}: give a whole number, 1 or more")
        self.permits = permits

    def _attempt(self, token: bytes) -> bool:
        if self.held:  # one object is one holder: a second permit would make it forget the first
            return False
        asked = time.monotonic()
        if not self.acquire_script(self.redis, [self.name], [token, self.lease, self.permits]):
            return False
        self._granted(token, asked + self.lease / 1000)
        return True

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, self.token = self._mine("release"), None
        with typed_errors(self.name):
            given_back = self.extend_script(self.redis, [self.name], [token, 0])
        if not given_back:
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )
