"""lock-inside-transaction: a right lock, taken and released inside the transaction. Free before the commit.

    A: BEGIN (ATOMIC_REQUESTS); lock; SELECT → 100; UPDATE balance = 110; unlock; … the rest of the view
    B:                  BEGIN; lock → granted; SELECT → 100        (A's 110 is not committed: nobody sees it)
    A: COMMIT → 110
    B:                  UPDATE balance = 120; unlock; COMMIT        A's 10 are gone

Guarantees   nothing. The lock protects the statements; what others can see begins at the commit.
Breaks when  a second caller comes between the unlock and the commit: serialising the answer, a middleware, a
             slow WAL flush. No fault is needed, and no test with one database connection ever shows it.
Costs        what `lock-around-transaction` costs.
Source       the commonest mistake with `ATOMIC_REQUESTS = True` or `@transaction.atomic` on the view, and a
             `with redis.lock(…)` inside it. The cure: `lock-around-transaction`.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import transaction

from ledger.posting import Applied, Posting
from ledger.stores.sql import SqlStore
from ledger.strategies.locked import Locked
from locks.hazards import Hazard
from locks.token_lock import TokenLock


class LockInsideTransaction(Locked):
    """`token`, inside the view's transaction."""

    slug = "lock-inside-transaction"
    title = "A correct lock inside the transaction"
    source = "Django manual, ATOMIC_REQUESTS: the commonest mistake (F4)"
    guarantees = "nothing: the lock is free before the commit"
    breaks_when = "a second caller comes between the unlock and the commit"
    round_trips = "as token, in a transaction of the whole request"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    stores = ("postgres", "mariadb")
    factory = TokenLock
    store: SqlStore

    def apply(self, posting: Posting) -> Applied:
        with transaction.atomic(using=self.store.db):  # as ATOMIC_REQUESTS does around every view
            done = super().apply(posting)  # lock … read, compute, write … unlock
            self.think()  # the rest of the view: others hold the lock by now, and read the old balance
        return done
