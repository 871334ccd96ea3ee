"""no-lock: read, compute, write. The bug itself, and the control of every trial.

    A: SELECT balance → 100
    B:                          SELECT balance → 100
    A: UPDATE balance = 110
    B:                          UPDATE balance = 120        A's 10 are gone, and nobody was told

Guarantees   nothing. The write is atomic, but the read it depends on is stale.
Breaks when  two callers want one account at the same time.
Costs        one SELECT, one UPDATE, one INSERT in a transaction.
Source       every tutorial's `account.balance += amount; account.save()`.
"""

from __future__ import annotations

from typing import ClassVar

from ledger.posting import Applied, Posting, applied, compute
from ledger.strategies.base import Strategy
from locks.hazards import Hazard


class NoLock(Strategy):
    """Read, compute, write, with nothing around it."""

    slug = "no-lock"
    protects = False
    title = "No lock"
    source = "A8: no lock at all"
    guarantees = "nothing"
    breaks_when = "two callers want one account at the same time"
    round_trips = "1 read, 1 transaction of 2 writes"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    stores = ("postgres", "mariadb", "redis")

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        read = self.store.read(posting)  # SELECT: what we believe the balance is
        changes = compute(posting, read)
        self.think()  # the window: a write by another caller now will be overwritten
        self.store.write(changes)  # UPDATE balance = <a number computed from the past>
        return applied(changes)
