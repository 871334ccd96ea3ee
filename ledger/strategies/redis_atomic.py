"""redis-atomic: one script adds, checks the floor, writes the entry and remembers the key.

    A: EVALSHA add, account, +10      (100 → 110; nobody else's command runs meanwhile)
    B:                  EVALSHA add, account, +20      (110 → 130)

Guarantees   no lost update among the clients: Redis runs one script at a time. A re-sent command counts once, while
             its key's record is there, which the script looks at: a bare HINCRBY whose reply was lost is sent again
             and counts twice.
Breaks when  the server forgets: a restart without persistence (everything), with `appendfsync everysec` (up to a
             second), a failover (what the replica had not seen), eviction (of a key's record: it is applied again).
             The callers had been told "done": ten prizes become fourteen. The script must not need anything that is
             not in Redis.
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
    """Let Redis add, in one script with everything that belongs to it."""

    slug = "redis-atomic"
    title = "One script in Redis (HINCRBY)"
    source = "ours: the account lives in Redis, EVAL and HINCRBY"
    guarantees = (
        "no lost update among clients; a re-sent posting counts once, while its key's record is there"
    )
    breaks_when = "the server forgets: restart, failover, eviction"
    round_trips = "1"
    withstands: ClassVar[frozenset[Hazard]] = REDIS_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        self.think()  # before the script: what the business decides here cannot rest on the balance
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
