"""redis-atomic: one script adds, checks the floor, writes the entry and remembers the key.

    A: EVALSHA add, account, +10      (100 → 110; nobody else's command runs meanwhile)
    B:                  EVALSHA add, account, +20      (110 → 130)

Guarantees   no lost update among the clients: Redis runs one script at a time. A re-sent command counts once, as
             long as its key's record exists, because the script looks for it. A bare HINCRBY whose reply was lost
             is sent again and counts twice.
Breaks when  the server forgets: everything in a restart without persistence, up to a second of work with
             `appendfsync everysec`, what the replica had not received in a failover, a key's record in an
             eviction (the posting is then applied again). The callers have already been told "done": ten prizes
             become fourteen. The script cannot use anything that is not in Redis.
Costs        1 round trip.
Source       Redis, HINCRBY and EVAL. The hot-account article keeps its balance in Redis too (A8).
"""

from __future__ import annotations

import json
from typing import Any, ClassVar
from uuid import uuid4

from django.utils import timezone
from redis.exceptions import ResponseError

from ledger.posting import Applied, Posting, Refused
from ledger.stores import KeyTaken
from ledger.stores.redis import all_or_nothing
from ledger.stores.redis_entries import known, parsed
from ledger.strategies.redis_store import REDIS_HAZARDS, RedisStrategy
from locks.hazards import Hazard
from locks.server import LuaScript

ADD = LuaScript("redis_add.lua", package="ledger.stores")


class RedisAtomic(RedisStrategy):
    """Let Redis add. One script does the whole posting."""

    slug = "redis-atomic"
    title = "One script in Redis (HINCRBY)"
    source = "ours: the account lives in Redis, EVAL and HINCRBY"
    guarantees = (
        "no lost update among clients; a re-sent posting counts once, as long as its key's record exists"
    )
    breaks_when = "the server forgets: restart, failover, eviction"
    round_trips = "1"
    withstands: ClassVar[frozenset[Hazard]] = REDIS_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        self.think()  # before the script: a decision made here cannot depend on the balance
        arguments: list[Any] = [posting.fingerprint]
        for line in posting.lines:
            entry = uuid4()
            told = known(posting.key, line.account, line.amount, entry, timezone.now())
            arguments += [line.amount, str(entry), json.dumps(told)[:-1]]
        try:
            with all_or_nothing():
                record = ADD(self.store.redis, self.store.keys(posting.key, posting.accounts), arguments)
        except ResponseError as error:
            if str(error).startswith("REFUSED "):
                raise Refused(str(error).removeprefix("REFUSED ")) from error
            raise
        if record == 0:
            raise KeyTaken(posting.key)
        return Applied(parsed(record)[1])
