"""optimistic-version: write only if the version is still the one that was read; otherwise start again.

    A: SELECT balance, version → 100, v7
    B:                                        SELECT balance, version → 100, v7
    A: UPDATE … SET balance = 110, version = 8 WHERE version = 7 → 1 row
    B:                                        UPDATE … SET balance = 120, version = 8 WHERE version = 7 → 0 rows
    B:                                        roll back, wait a random while, SELECT → 110, v8 …

Guarantees   no lost update: a write based on a stale read changes no row, and the writer knows it.
Breaks when  a single UPDATE forgets the version. Heavy contention does not lose money but costs patience: the
             retries are bounded, and a caller that has used them up gets "busy", certainly not applied.
Costs        SELECT, then BEGIN, UPDATE, INSERT, COMMIT for each attempt. Nothing is locked during the business
             logic. On a hot account most of the work is thrown away.
Source       Kung & Robinson 1981; Django documents it as `filter(version=…).update(…)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from django.db import transaction

from ledger.models import Account
from ledger.posting import Applied, Change, Posting, applied, compute
from ledger.stores.sql import SqlStore
from ledger.strategies.base import Outrun
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS, SqlStrategy
from locks.hazards import Hazard


class OptimisticVersion(SqlStrategy):
    """Compare the version in the UPDATE itself, and retry with jitter."""

    slug = "optimistic-version"
    row_lock_excludes = True
    title = "Optimistic version column"
    source = "A6: the optimistic lock; Kung and Robinson 1981 (F9)"
    guarantees = "no lost update: a write based on a stale read changes no row"
    breaks_when = "one UPDATE forgets the version; a hot account costs retries"
    round_trips = "1 read, then 4 for each attempt"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS
    #: the account's column that the UPDATE compares with the value that was read
    compared = "version"

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        return self.insist(lambda number: self.attempt(posting, number), f"each met another {self.compared}")

    def attempt(self, posting: Posting, retries: int) -> Applied:
        changes = compute(posting, self.store.read(posting))
        self.think()
        put_if_unchanged(self.store, changes, self.compared)
        return applied(changes, retries)


def put_if_unchanged(store: SqlStore, changes: Sequence[Change], compared: str = "version") -> None:
    """UPDATE … WHERE version = the one that was read, in one transaction with the entries. Raises Outrun if no row has
    that version any more; nothing is written then."""
    with transaction.atomic(using=store.db):
        for change in sorted(changes, key=lambda c: c.before.number):  # one common order: no deadlock
            read = {compared: getattr(change.before, compared)}
            row = Account.objects.using(store.db).filter(pk=change.before.pk, **read)
            if not row.update(balance=change.after, version=change.before.version + 1, head=change.entry):
                raise Outrun
        store.record(changes)
