"""lock-around-transaction: the transaction begins and ends inside the lock.

    A: lock; BEGIN; SELECT → 100; UPDATE balance = 110; COMMIT; unlock
    B:                  lock (waits)                                    → granted; BEGIN; SELECT → 110 …

Guarantees   what `token` guarantees, for all database work in the section: each holder sees what the previous
             holder committed.
Breaks when  the section outlasts the lease, or the lock's server forgets the lock (see `token`, `fenced`). It would
             also break when called inside another transaction, because the commit would then follow the unlock.
             `atomic(durable=True)` refuses that with a RuntimeError instead of losing money.
Costs        1 round trip for the lock and 1 for the unlock around BEGIN, SELECT, UPDATE, INSERT, COMMIT.
Source       Django, `transaction.atomic(durable=True)`; the remedy for `lock-inside-transaction`. Under
             ATOMIC_REQUESTS such a view needs `@transaction.non_atomic_requests`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import transaction

from ledger.posting import Change, Posting, compute
from ledger.stores.sql import SqlStore
from ledger.strategies.locked import Locked
from locks.hazards import Hazard
from locks.token_lock import TokenLock


class LockAroundTransaction(Locked):
    """`token` around a transaction that is always the outermost one."""

    slug = "lock-around-transaction"
    title = "A correct lock around the transaction"
    source = "ours: the remedy for lock-inside-transaction"
    guarantees = "as token; each holder sees what the previous one committed"
    breaks_when = "section or pause outlasts the lease; the lock's server forgets the lock"
    round_trips = "1 + 5 + 1"
    withstands: ClassVar[frozenset[Hazard]] = TokenLock.withstands
    stores = ("postgres", "mariadb")
    factory = TokenLock
    store: SqlStore

    def inside(self, posting: Posting, taken: list[Any]) -> list[Change]:
        with transaction.atomic(using=self.store.db, durable=True):
            changes = compute(posting, self.store.read(posting))
            self.think()
            self.store.put(changes)
        return changes
