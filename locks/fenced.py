"""fenced: the token lock, and with each grant a number that is larger than any before it.

    A: acquire → token a7f3, number 33; SET fence = 33 WHERE fence < 33 → 1 row; read 100 (paused past the lease)
    B: acquire → token 91c2, number 34; SET fence = 34 WHERE fence < 34 → 1 row; read 100
    B: UPDATE … SET balance = 120 WHERE fence = 34 → 1 row
    A: UPDATE … SET balance = 110 WHERE fence = 33 → 0 rows        the store refuses A

    in front of a store that compares the number at the write alone (`WHERE fence < 33`):
    A: write 110, while B has read and not written yet                   A's 10 are gone when B writes 120
    in front of a store that does not look at the number:
    A: write 110                                                         B's 20 are gone, as with `token`

Guarantees   what `token` does; and the numbers grow with every grant, across release, expiry, SCRIPT FLUSH.
             With a store that registers the number before it is read, and lets only the newest one write, a late
             holder cannot write. Compared at the write alone, it can (the strategy `fenced-at-write`).
Breaks when  nobody checks the number: then it is `token`. A failover or a restart that loses the counter
             hands out a number twice; the store must then refuse a second holder with an equal number too.
Costs        1 round trip to acquire (the number comes from the same script), 1 to release, and a column in
             the store.
Source       M. Kleppmann, "How to do distributed locking" (2016): fencing tokens.
"""

from __future__ import annotations

import time
from typing import ClassVar

from redis import Redis

from locks.base import NO_RENEWER, without
from locks.server import LuaScript, typed_errors
from locks.token_lock import TokenLock


class FencedLock(TokenLock):
    """`token` plus `.fencing_token`, for a store that registers it before the read and checks it at the write."""

    slug = "fenced"
    title = "Token lock with a fencing number"
    source = 'M. Kleppmann, "How to do distributed locking" (F2)'
    guarantees = (
        "as `token`; and a number that grows with every grant, by which a store can refuse a late holder"
    )
    breaks_when = "nobody checks the number; the counter is lost in a failover"
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated")
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER

    acquire_script = LuaScript("fenced_acquire.lua")
    seen_script = LuaScript("fenced_seen.lua")

    def __init__(self, name: str, *, redis: Redis, lease: float = 10.0, poll: float = 0.05) -> None:
        """Seconds: `lease` of the key, `poll` between two attempts."""
        super().__init__(name, redis=redis, lease=lease, poll=poll)
        self._keys = [self.name, f"{{{self.name}}}:fence"]  # one hash slot: the counter lives beside its lock

    def _attempt(self, token: bytes) -> bool:
        asked = time.monotonic()
        number = self.acquire_script(self.redis, self._keys, [token, self.lease])
        if number is None:
            return False
        self._granted(token, asked + self.lease / 1000)
        self.fencing_token = int(number)
        return True

    def seen(self, number: int) -> None:
        """Say that a store has seen `number`: the next grants are above it, also after a lost counter."""
        with typed_errors(self.name):
            self.seen_script(self.redis, self._keys[1:], [number])
