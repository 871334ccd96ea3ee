"""read-write: any number of readers, or one writer. Each has a token and a lease.

    A reads:  acquire r:a7f3 → inside       B reads:  acquire r:91c2 → inside
    C writes: acquire w:55d0 → refused      its wish stays for three polls: new readers wait
    D reads:  acquire r:0b7e → refused      A and B leave
    C writes: acquire w:55d0 → inside       D waits until C leaves

    and it breaks as `token` does:
    C writes: read 100 (paused past its lease)
    D reads:  drop C's, acquire r:0b7e → inside, read 100      C: write 110      D goes on with 100

Guarantees   one writer alone, or readers only, while each section fits its lease and the server forgets nothing. A
             stream of readers does not starve a writer. A crashed reader's or writer's place ends with its lease.
             Nobody gives back another's place.
Breaks when  section or pause outlasts the lease; the server loses the key or its clock jumps. A reader that
             wants to write must leave first: one that waits inside for the writer's place waits for itself.
Costs        1 round trip to acquire (again every `poll` while waiting), 1 to release, 1 to extend. The server
             looks at all who are inside, so an acquire costs more the more readers there are.
Source       the Tair manual names it (B1); the algorithm is ours, on the lines of `semaphore`.
"""

from __future__ import annotations

import time
from typing import ClassVar

from redis import Redis

from locks.base import NO_FENCING, NO_RENEWER
from locks.semaphore import SemaphoreLock
from locks.server import LuaScript


class ReadWriteLock(SemaphoreLock):
    """Readers together, a writer alone. Without `shared=True` it is a writer, and so a plain lock."""

    slug = "read-write"
    title = "Many readers or one writer"
    source = "B1: the read-write lock; the algorithm is ours"
    guarantees = "one writer alone, or readers only, while each section fits its lease; writers do not starve"
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    acquire_script = LuaScript("read_write_acquire.lua")

    def __init__(
        self, name: str, *, redis: Redis, shared: bool = False, lease: float = 10.0, poll: float = 0.05
    ) -> None:
        """`shared`: enter as a reader. Seconds: `lease` of the place, `poll` between two attempts."""
        super().__init__(name, redis=redis, lease=lease, poll=poll)
        self.shared = shared

    def _attempt(self, token: bytes) -> bool:
        if self.held:  # one object is one holder: it would forget the place that it has
            return False
        asked, member = time.monotonic(), (b"r" if self.shared else b"w") + token
        wish = max(1, round(self.poll * 3000))  # milliseconds
        if not self.acquire_script(self.redis, [self.name], [member, self.lease, wish]):
            return False
        self._granted(member, asked + self.lease / 1000)
        return True
