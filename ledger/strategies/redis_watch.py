"""redis-watch: Redis's own optimistic locking. EXEC does nothing if a watched key was touched.

    A: WATCH account; HMGET → 100
    B:                  WATCH account; HMGET → 100
    A: MULTI; HSET balance 110; RPUSH entry; SET key; EXEC → done
    B:                  MULTI; HSET balance 120; …; EXEC → nil        reads again, starts again

Guarantees   no lost update among the clients: a transaction based on a stale read is not executed. Writing the same
             value counts as a touch, so there is no ABA.
Breaks when  the server forgets (see `redis-atomic`); the read precedes WATCH; the client library reconnects in
             between and the watch is gone (redis-py notices it: WatchError). On a hot account most attempts are
             wasted, and a caller that has used up its retries gets "busy". A lost reply to EXEC looks to redis-py
             like a touched key: the next attempt finds the posting's key, and after the last attempt the outcome
             is unknown.
Costs        WATCH, look for the key, read, and the transaction in one: 4 round trips for each attempt.
Source       Redis, "Transactions: optimistic locking using check-and-set".
"""

from __future__ import annotations

from typing import Any, ClassVar

from redis.exceptions import ConnectionError, RedisError, TimeoutError, WatchError

from ledger.posting import Applied, Busy, Posting, applied, compute
from ledger.stores import KeyTaken
from ledger.stores.redis import all_or_nothing
from ledger.stores.redis_entries import as_json, record_of
from ledger.strategies.base import Outrun
from ledger.strategies.redis_store import REDIS_HAZARDS, RedisStrategy
from locks.hazards import Hazard


class RedisWatch(RedisStrategy):
    """WATCH, read, compute, MULTI/EXEC, and retry if another client was faster."""

    slug = "redis-watch"
    title = "WATCH / MULTI / EXEC with retries"
    source = "Redis manual, transactions (F1); ours on this account"
    guarantees = "no lost update among clients: a transaction based on a stale read is not executed"
    breaks_when = "the server forgets: restart, failover, eviction; a hot account costs retries"
    round_trips = "4 for each attempt"
    withstands: ClassVar[frozenset[Hazard]] = REDIS_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        lost: list[RedisError] = []

        def attempt(number: int) -> Applied:
            try:
                return self.attempt(posting, number)
            except WatchError as error:
                if isinstance(error.__context__, ConnectionError | TimeoutError):
                    lost.append(error.__context__)
                raise Outrun from error

        try:
            return self.insist(attempt, "each met a touched account")
        except Busy:
            if lost:
                raise lost[0] from None  # EXEC may have been executed: the outcome is unknown
            raise

    def attempt(self, posting: Posting, retries: int) -> Applied:
        record, *names = self.store.keys(posting.key, posting.accounts)
        with self.store.redis.pipeline() as pipe:
            pipe.watch(record, *names[::2])
            if pipe.exists(record):
                raise KeyTaken(posting.key)
            changes = compute(posting, self.store.read_by(pipe, posting))
            self.think()
            pipe.multi()
            for change, account, entries in zip(changes, names[::2], names[1::2], strict=True):
                fields: dict[Any, Any] = {
                    "balance": change.after,
                    "version": change.before.version + 1,
                    "head": str(change.entry),
                }
                pipe.hset(account, mapping=fields)
                pipe.rpush(entries, as_json(change))
            pipe.set(record, record_of(changes))
            with all_or_nothing():
                pipe.execute()
        return applied(changes, retries)
