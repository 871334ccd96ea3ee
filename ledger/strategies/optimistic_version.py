"""optimistic-version: write only if the version is still the one that was read; else start again.

    A: SELECT balance, version → 100, v7
    B:                                        SELECT balance, version → 100, v7
    A: UPDATE … SET balance = 110, version = 8 WHERE version = 7 → 1 row
    B:                                        UPDATE … SET balance = 120, version = 8 WHERE version = 7 → 0 rows
    B:                                        roll back, wait a random while, SELECT → 110, v8 …

Guarantees   no lost update: a write on a stale read changes no row, and the writer knows.
Breaks when  a caller forgets the version in one single UPDATE; under heavy contention it does not lose money
             but patience: retries are bounded, and who used them up gets "busy", certainly not applied.
Costs        SELECT, then BEGIN, UPDATE, INSERT, COMMIT for each attempt. Nothing is locked while the business
             works; on a hot account most of the work is thrown away.
Source       Kung & Robinson 1981; Django documents it as `filter(version=…).update(…)`.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import transaction

from ledger.models import Account
from ledger.posting import Applied, Busy, Change, Posting, applied, compute
from ledger.strategies.sql import DATABASE_HAZARDS, SqlStrategy
from locks.hazards import Hazard


class Stale(Exception):
    """The version had moved on: the attempt's transaction is rolled back."""


class OptimisticVersion(SqlStrategy):
    """Compare the version in the UPDATE itself, and retry with jitter."""

    slug = "optimistic-version"
    title = "Optimistic version column"
    source = "Kung & Robinson 1981"
    guarantees = "no lost update: a write on a stale read changes no row"
    breaks_when = "one UPDATE forgets the version; a hot account costs retries"
    round_trips = "1 read, then 4 for each attempt"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        for attempt in range(self.settings.retries + 1):
            changes = compute(posting, self.store.read(posting))
            self.think()
            try:
                with transaction.atomic(using=self.db):
                    for change in sorted(changes, key=lambda c: c.before.number):  # one order: no deadlock
                        self.write_if_unchanged(change)
                    self.store.record(changes)
            except Stale:
                self.back_off()
                continue
            return applied(changes, retries=attempt)
        raise Busy(f"{self.settings.retries + 1} attempts met a newer version each time")

    def write_if_unchanged(self, change: Change) -> None:
        """UPDATE … WHERE version = the one that was read. Raises Stale when that row is gone."""
        written = (
            Account.objects.using(self.db)
            .filter(pk=change.before.pk, version=change.before.version)
            .update(balance=change.after, version=change.before.version + 1, head=change.entry)
        )
        if not written:
            raise Stale
