"""lock-inside-transaction: a correct lock, taken and released inside the transaction, so it is free before the commit.

    A: BEGIN (ATOMIC_REQUESTS); lock; SELECT → 100; UPDATE balance = 110; unlock; … the rest of the view
    B:                  BEGIN; lock → granted; SELECT → 100        (A's 110 is not committed: nobody sees it)
    A: COMMIT → 110
    B:                  UPDATE balance = 120; unlock; COMMIT        A's 10 are gone

Guarantees   nothing. The lock protects the statements, but other callers see the result only after the commit.
Breaks when  a second caller arrives between the unlock and the commit: while the view serialises its answer, while
             a middleware runs, during a slow WAL flush. It needs no fault, and a test with a single database
             connection never shows it.
Costs        what `lock-around-transaction` costs.
Source       the commonest mistake with `ATOMIC_REQUESTS = True` or `@transaction.atomic` on the view and a
             `with redis.lock(…)` inside it. The remedy: `lock-around-transaction`.
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
    breaks_when = "a second caller arrives between the unlock and the commit"
    round_trips = "as token, in a transaction of the whole request"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    stores = ("postgres", "mariadb")
    factory = TokenLock
    store: SqlStore

    def apply(self, posting: Posting) -> Applied:
        with transaction.atomic(using=self.store.db):  # as ATOMIC_REQUESTS does around every view
            done = super().apply(posting)  # lock … read, compute, write … unlock
            self.think()  # the rest of the view: another caller already holds the lock and reads the old balance
        return done
