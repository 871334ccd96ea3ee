"""redis-gate: a counter in Redis turns away those for whom nothing is left, and a conditional UPDATE decides.

    stock 1, A and B want one each:
    A: DECRBY gate 1 → 0                go on
    B:                  DECRBY gate 1 → −1, INCRBY gate 1        refused: the database never hears of B
    A: UPDATE … SET balance = balance − 1 WHERE balance − 1 >= floor → 1 row

Guarantees   what `atomic-update` guarantees, floor included: nobody is acknowledged by the counter alone. Of a
             thousand callers for ten prizes, about ten reach the database.
Breaks when  the gate forgets what it knew (restart, failover, eviction): it asks the database again, and may let
             too many in, whom the UPDATE refuses. A caller that dies between gate and database takes its piece
             with it: some are turned away though something is left, until the gate expires after a minute. A
             counter that *acknowledges* is another story: see `redis-atomic`.
Costs        1 round trip more than `atomic-update` for those who get in, 1 in all for those who do not.
Source       the first article's flash sale: Redis DECR in front, a conditional SQL update behind.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from redis.exceptions import RedisError

from ledger.posting import Applied, Line, Posting, Refused
from ledger.resources import redis_client
from ledger.strategies.atomic_update import AtomicUpdate
from ledger.strategies.sql import DATABASE_HAZARDS
from locks.hazards import Hazard
from locks.server import LuaScript

TAKE = LuaScript("redis_gate.lua", package=__package__)
EXPIRY = 60  # seconds until what the gate believes is asked anew


class RedisGate(AtomicUpdate):
    """`atomic-update` behind a counter. Deposits, and accounts without a floor, pass by the gate."""

    slug = "redis-gate"
    title = "Redis DECR gate, then conditional UPDATE"
    source = "first article: the flash sale"
    guarantees = "as atomic-update, floor included; whoever comes too late never reaches the database"
    breaks_when = "never for the money; a caller that dies at the gate takes its piece with it for a minute"
    round_trips = "1 + atomic-update's"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        taken: list[Line] = []
        try:
            for line in posting.lines:
                if line.amount < 0:
                    self.take(line)
                    taken.append(line)
            done = super().apply(posting)
        except BaseException:
            self.forget(taken)  # refused by the database, or unknown: what the gate believes is wrong
            raise
        self.forget([line for line in posting.lines if line.amount > 0])
        return done

    def take(self, line: Line) -> None:
        """Take the amount out of the gate. Raises Refused when there is not enough. A gate that cannot be asked
        stands open: the database decides."""
        key = self.key(line)
        try:
            taken = TAKE(redis_client(), [key], [-line.amount])
            if taken is None and (room := self.room(line)) is not None:
                redis_client().set(key, room, nx=True, ex=EXPIRY)
                taken = TAKE(redis_client(), [key], [-line.amount])
        except RedisError:
            return
        if taken == 0:
            raise Refused(f"account {line.account}: {line.amount} is more than what is left")

    def forget(self, lines: list[Line]) -> None:
        """Let the gate ask the database again. If Redis cannot be asked, it will when the guess expires."""
        if lines:
            with suppress(RedisError):
                redis_client().delete(*map(self.key, lines))

    def room(self, line: Line) -> int | None:
        """Return what is left above the floor, or None for an account without a floor."""
        read = self.store.read(Posting("", (line,)))[line.account]
        return None if read.floor is None else read.balance - read.floor

    def key(self, line: Line) -> str:
        return f"{self.book.pk}:{line.account}:gate"
