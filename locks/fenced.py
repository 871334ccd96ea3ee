"""fenced: the token lock, and with each grant a number that is larger than any before it.

    A: acquire → token a7f3, number 33; SET fence = 33 WHERE fence < 33 → 1 row; read 100 (paused past the lease)
    B: acquire → token 91c2, number 34; SET fence = 34 WHERE fence < 34 → 1 row; read 100
    B: UPDATE … SET balance = 120 WHERE fence = 34 → 1 row
    A: UPDATE … SET balance = 110 WHERE fence = 33 → 0 rows        the store refuses A

    with a store that compares the number at the write alone (`WHERE fence < 33`):
    A: write 110, while B has read and not written yet                   A's 10 are gone when B writes 120
    with a store that ignores the number:
    A: write 110                                                         B's 20 are gone, as with `token`

Guarantees   the same as `token`. The numbers grow with every grant, across releases, expiries and SCRIPT FLUSH. If
             the store registers the number before the read, and lets only the newest number write, a late holder
             cannot write. If the store compares the number at the write alone, a late holder still can (the strategy
             `fenced-at-write`).
Breaks when  nobody checks the number: then it is `token`. A failover or a restart that loses the counter hands out
             a number twice. The store must then refuse a second holder with an equal number too.
Costs        1 round trip to acquire (the same script returns the number), 1 to release, and a column in the store.
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
    guarantees = "as `token`; each grant has a larger number, with which a store can refuse a late holder"
    breaks_when = "nobody checks the number; the counter is lost in a failover"
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated")
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER

    acquire_script = LuaScript("fenced_acquire.lua")
    seen_script = LuaScript("fenced_seen.lua")

    def __init__(self, name: str, *, redis: Redis, lease: float = 10.0, poll: float = 0.05) -> None:
        """Seconds: `lease` of the key, `poll` between two attempts."""
        super().__init__(name, redis=redis, lease=lease, poll=poll)
        self._keys = [self.name, f"{{{self.name}}}:fence"]  # one hash slot, so that one script can use both

    def _attempt(self, token: bytes) -> bool:
        asked = time.monotonic()
        number = self.acquire_script(self.redis, self._keys, [token, self.lease])
        if number is None:
            return False
        self._granted(token, asked + self.lease / 1000)
        self.fencing_token = int(number)
        return True

    def seen(self, number: int) -> None:
        """Report that a store has seen `number`. Later grants are above it, even if the counter was lost."""
        with typed_errors(self.name):
            self.seen_script(self.redis, self._keys[1:], [number])
