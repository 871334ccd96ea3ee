"""redis-gate: a counter in Redis turns callers away when nothing is left, and a conditional UPDATE decides.

    stock 1, A and B want one each:
    A: DECRBY gate 1 → 0                go on
    B:                  DECRBY gate 1 → −1, INCRBY gate 1        refused: B does not queue for the row
    A: UPDATE … SET balance = balance − 1 WHERE balance − 1 >= floor → 1 row

    nothing is left, and a delivery comes while C asks what there is:
    C: SET token …; SELECT → 0
    D:                  UPDATE balance = balance + 50; DEL gate, token
    C: SET gate 0, if the token is still there: no. C goes on, and the UPDATE decides

Guarantees   what `atomic-update` guarantees, including the floor: the counter alone never acknowledges a posting.
             Of a thousand callers for ten prizes, about ten queue for the account's row.
Breaks when  the gate loses its count (restart, failover, eviction). It then asks the database again and may let
             too many callers in, and the UPDATE refuses the surplus. A caller that dies between gate and database
             takes its piece with it: some callers are turned away although something is left, until the gate
             expires after a minute. A counter that *acknowledges* is a different design: see `redis-atomic`.
Costs        1 round trip more than `atomic-update` for callers that get in, and 1 instead of it for callers that do
             not. A caller that finds the gate without a count makes 3 more and a SELECT.
Source       the flash sale of D11 and the ten prizes of E6, answered with E15: Redis in front, a conditional SQL
             update behind.
"""

from __future__ import annotations

from contextlib import suppress
from secrets import token_hex
from typing import ClassVar

from redis.exceptions import RedisError

from ledger.addresses import NoServers
from ledger.posting import Applied, Line, Posting, Refused
from ledger.resources import redis_client
from ledger.strategies.atomic_update import AtomicUpdate
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS
from locks.hazards import Hazard
from locks.server import LuaScript

TAKE = LuaScript("redis_gate.lua", package=__package__)
FILL = LuaScript("redis_gate_fill.lua", package=__package__)
EXPIRY = 60  # seconds until the gate's count is read from the database again


class RedisGate(AtomicUpdate):
    """`atomic-update` behind a counter. Deposits and accounts without a floor bypass the gate."""

    slug = "redis-gate"
    gates_withdrawals = True
    title = "Redis DECR gate, then conditional UPDATE"
    source = "D11, E6, E15: the flash sale"
    guarantees = "as atomic-update, including the floor; callers that come too late do not queue for the row"
    breaks_when = "no money is at risk; a caller that dies at the gate withholds its piece for a minute"
    round_trips = "1 + atomic-update's"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        taken: list[Line] = []
        try:
            for line in posting.lines:
                if line.amount < 0:
                    self.take(line)
                    taken.append(line)
            done = super().apply(posting)
        except BaseException:
            self.forget(taken)  # refused by the database, or unknown: the gate's count is wrong
            raise
        self.forget([line for line in posting.lines if line.amount > 0])
        return done

    def take(self, line: Line) -> None:
        """Take the amount out of the gate's count. Raises Refused if the count is too small. An unreachable gate is
        open: the database decides."""
        gate, _ = self.keys(line)
        try:
            taken = TAKE(redis_client(), [gate], [-line.amount])
            if taken is None and self.fill(line):
                taken = TAKE(redis_client(), [gate], [-line.amount])
        except (RedisError, NoServers):
            return
        if taken == 0:
            raise Refused(f"account {line.account}: {line.amount} is more than what is left")

    def fill(self, line: Line) -> bool:
        """Read from the database what is left, and store it in the gate. Returns False if there is no floor.

        If `forget` ran meanwhile, nothing is stored: the read may be older than a delivery, and the gate would turn
        every caller away until it expires.
        """
        _, token = keys = self.keys(line)
        mine = token_hex(8).encode()
        before = redis_client().set(token, mine, nx=True, get=True, ex=EXPIRY) or mine
        room = self.room(line)
        if room is not None:
            FILL(redis_client(), keys, [before, room, EXPIRY])
        return room is not None

    def forget(self, lines: list[Line]) -> None:
        """Make the gate read the database again. If Redis is unreachable, it does so when the count expires."""
        if lines:
            with suppress(RedisError, NoServers):
                redis_client().delete(*(key for line in lines for key in self.keys(line)))

    def room(self, line: Line) -> int | None:
        """Return what is left above the floor, or None for an account without a floor."""
        read = self.store.read(Posting("", (line,)))[line.account]
        return None if read.floor is None else read.balance - read.floor

    def keys(self, line: Line) -> list[str]:
        """Return the keys of the gate and of the token that guards a pending fill."""
        gate = f"{self.book.pk}:{line.account}:gate"
        return [gate, f"{gate}:token"]
