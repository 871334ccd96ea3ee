"""redis-then-database: a token lock orders the queue, and a version check protects the money.

    A: lock; SELECT → 100, v7   (paused past the lease)
    B:                  lock → granted; SELECT → 100, v7; UPDATE … SET balance = 120, version = 8 WHERE version = 7
    A: UPDATE … SET balance = 110, version = 8 WHERE version = 7 → 0 rows        locks again, reads again

Guarantees   no lost update, whatever happens to the lock: the database compares the version. The lock keeps the
             callers of a hot account from throwing away each other's work and from queueing in the database.
             If Redis is unreachable, the callers continue without the lock.
Breaks when  a single UPDATE forgets the version. A caller that has used up its retries gets "busy".
Costs        a lock and an unlock around `optimistic-version`'s SELECT, BEGIN, UPDATE, INSERT, COMMIT.
Source       the lock-table article's advice (E15) for high concurrency *and* consistency:
             Redis first, the database last.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar

from redis.exceptions import RedisError

from ledger.addresses import NoServers
from ledger.posting import Applied, Change, Posting, compute
from ledger.stores.sql import SqlStore
from ledger.strategies.locked import Locked
from ledger.strategies.optimistic_version import put_if_unchanged
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS
from locks import LockUnavailable
from locks.hazards import Hazard
from locks.token_lock import TokenLock


class RedisThenDatabase(Locked):
    """`token` around a version check: the lock is for throughput, the version is for the money."""

    slug = "redis-then-database"
    title = "Token lock, then version check"
    source = "E15: Redis for concurrency, the database for consistency"
    guarantees = "no lost update: a write based on a stale read changes no row, whatever happens to the lock"
    breaks_when = "one UPDATE forgets the version"
    round_trips = "1 + 5 + 1"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS
    stores = ("postgres", "mariadb")
    factory = TokenLock
    store: SqlStore

    def apply(self, posting: Posting) -> Applied:
        once = super().apply
        return self.insist(lambda number: replace(once(posting), retries=number), "each met another version")

    def take(self, number: str) -> Any:
        """Take the lock, or continue without it if its server is unreachable."""
        try:
            return super().take(number)
        except (LockUnavailable, RedisError, NoServers):
            return nullcontext()

    def inside(self, posting: Posting, taken: list[Any]) -> list[Change]:
        changes = compute(posting, self.store.read(posting))
        self.think()
        put_if_unchanged(self.store, changes)
        return changes
