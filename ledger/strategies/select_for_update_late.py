"""select-for-update-late: read the balance, compute, and only then lock the row and write.

    A: SELECT → 100
    B:                  SELECT → 100
    A: BEGIN; SELECT … FOR UPDATE; UPDATE balance = 50 (100 − 50); COMMIT
    B:                  BEGIN; SELECT … FOR UPDATE        (waits for A: the lock works)
    B:                  UPDATE balance = 60 (100 − 40); COMMIT        A's 50 are back: 60 instead of 10

Guarantees   nothing. The writes queue up in perfect order, and each writes a number computed from the past.
Breaks when  two callers want one account at the same time: exactly as `no-lock`, only slower.
Costs        one round trip more than `select-for-update`, for nothing.
Source       the hot-account article's common mistake (A5): 100 − 50 − 40 → 60. It often hides in two functions: one
             loads and validates the object, the other one "saves it safely".
"""

from __future__ import annotations

from typing import ClassVar

from django.db import transaction

from ledger.models import Account
from ledger.posting import Applied, Posting, applied, compute
from ledger.strategies.sql import SqlStrategy
from locks.hazards import Hazard


class SelectForUpdateLate(SqlStrategy):
    """The right lock, taken after the read that it should protect."""

    slug = "select-for-update-late"
    title = "SELECT … FOR UPDATE after the read"
    source = "A5: the common mistake"
    guarantees = "nothing: the lock orders the writes, but the balances in them are stale"
    breaks_when = "two callers want one account at the same time"
    round_trips = "1 read, then 5 in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        changes = compute(posting, self.store.read(posting))  # too early: nothing protects this balance
        self.think()
        with transaction.atomic(using=self.db):
            rows = Account.objects.using(self.db).select_for_update()
            list(rows.filter(book_id=self.book.pk, number__in=posting.accounts).order_by("number"))
            self.store.put(changes)
        return applied(changes)
