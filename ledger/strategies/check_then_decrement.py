"""check-then-decrement: check the stock, then decrement it atomically. This is how 14 of 10 prizes are given away.

    A: SELECT stock → 1, enough
    B:                           SELECT stock → 1, enough
    A: UPDATE stock = stock − 1 → 0
    B:                           UPDATE stock = stock − 1 → −1      the books balance, and one piece is sold twice

Guarantees   no lost update: the balance and the entries contain each decrement. The floor is not protected: the
             check used a number from the past.
Breaks when  two callers want the last piece. The remedy is to check inside the statement
             (`WHERE stock − 1 >= 0`: `atomic-update`), or to lock the row before the check.
Costs        a SELECT, and the one statement of `atomic-update`.
Source       the lock-table article (E6): 14 prizes were given, of 10.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import transaction

from ledger.posting import Applied, Posting, compute
from ledger.strategies.atomic_update import in_one_transaction
from ledger.strategies.sql import SqlStrategy, in_range
from locks.hazards import Hazard


class CheckThenDecrement(SqlStrategy):
    """Check the floor against the balance that was read, then add in the database without a condition."""

    slug = "check-then-decrement"
    title = "Check, then decrement"
    source = "E6: 14 prizes were given, of 10"
    guarantees = "no lost update; the floor is not protected"
    breaks_when = "two callers want the last piece: both check before either takes it"
    round_trips = "1 read, then 6 in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        compute(posting, self.store.read(posting))  # enough at the time of the read
        self.think()  # the window: a piece that another caller takes now is sold twice
        with in_range(posting), transaction.atomic(using=self.db):  # one common order: no deadlock
            lines = sorted(posting.lines, key=lambda line: line.account)
            return Applied(
                tuple(
                    in_one_transaction(self.store, posting, line, place, checked=False)[0]
                    for place, line in enumerate(lines)
                )
            )
