"""redis-gate: a counter in Redis turns away those for whom nothing is left, and a conditional UPDATE decides.

    stock 1, A and B want one each:
    A: DECRBY gate 1 → 0                go on
    B:                  DECRBY gate 1 → −1, INCRBY gate 1        refused: B does not queue for the row
    A: UPDATE … SET balance = balance − 1 WHERE balance − 1 >= floor → 1 row

    nothing is left, and a delivery comes while C asks what there is:
    C: SET token …; SELECT → 0
    D:                  UPDATE balance = balance + 50; DEL gate, token
    C: SET gate 0, if the token is still there: no. C goes on, and the UPDATE decides

Guarantees   what `atomic-update` guarantees, floor included: nobody is acknowledged by the counter alone. Of a
             thousand callers for ten prizes, about ten queue for the account's row.
Breaks when  the gate forgets what it knew (restart, failover, eviction): it asks the database again, and may let
             too many in, whom the UPDATE refuses. A caller that dies between gate and database takes its piece
             with it: some are turned away though something is left, until the gate expires after a minute. A
             counter that *acknowledges* is another story: see `redis-atomic`.
Costs        1 round trip more than `atomic-update` for those who get in, 1 instead of it for those who do not; 3
             more and a SELECT for who finds a gate that does not know.
Source       the flash sale of D11, answered with E15: Redis in front, a conditional SQL update behind.
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
from ledger.strategies.sql import DATABASE_HAZARDS
from locks.hazards import Hazard
from locks.server import LuaScript

TAKE = LuaScript("redis_gate.lua", package=__package__)
FILL = LuaScript("redis_gate_fill.lua", package=__package__)
EXPIRY = 60  # seconds until what the gate believes is asked anew


class RedisGate(AtomicUpdate):
    """`atomic-update` behind a counter. Deposits, and accounts without a floor, pass by the gate."""

    slug = "redis-gate"
    gates_withdrawals = True
    title = "Redis DECR gate, then conditional UPDATE"
    source = "D11 and E15: the flash sale"
    guarantees = "as atomic-update, floor included; callers that come too late do not queue for the row"
    breaks_when = "no money is at risk; a caller that dies at the gate holds its piece back for a minute"
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
        """Ask the database what is left, and tell the gate, unless it was told to forget meanwhile: what was read may
        be from before a delivery, and everyone would be turned away until it expires. False: there is no floor."""
        _, token = keys = self.keys(line)
        mine = token_hex(8).encode()
        before = redis_client().set(token, mine, nx=True, get=True, ex=EXPIRY) or mine
        room = self.room(line)
        if room is not None:
            FILL(redis_client(), keys, [before, room, EXPIRY])
        return room is not None

    def forget(self, lines: list[Line]) -> None:
        """Let the gate ask the database again. If Redis cannot be asked, it will when the guess expires."""
        if lines:
            with suppress(RedisError, NoServers):
                redis_client().delete(*(key for line in lines for key in self.keys(line)))

    def room(self, line: Line) -> int | None:
        """Return what is left above the floor, or None for an account without a floor."""
        read = self.store.read(Posting("", (line,)))[line.account]
        return None if read.floor is None else read.balance - read.floor

    def keys(self, line: Line) -> list[str]:
        """Return the names of the gate, and of the token that goes with what was read for it."""
        gate = f"{self.book.pk}:{line.account}:gate"
        return [gate, f"{gate}:token"]
