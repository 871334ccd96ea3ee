"""select-for-update: lock the row, then read it, then write it.

    A: BEGIN; SELECT … FOR UPDATE → 100
    B:                                     BEGIN; SELECT … FOR UPDATE        (waits in the database)
    A: UPDATE balance = 110; INSERT entry; COMMIT
    B:                                     → 110; UPDATE balance = 130; INSERT entry; COMMIT

Guarantees   no lost update: the lock belongs to the transaction that writes, and ends with it. When a holder
             crashes, its session ends and the row is free. A paused holder keeps the row, and no caller overtakes
             it.
Breaks when  a caller reads *before* locking (`select-for-update-late`), or locks several rows in no fixed order
             (deadlock; here the rows are locked in the order of their numbers).
Costs        BEGIN, SELECT, UPDATE, INSERT, COMMIT: 5 round trips, while the row stays locked. Postings on one
             account queue up behind each other's business logic.
Source       PostgreSQL, "Explicit Locking"; Django, `QuerySet.select_for_update`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.db import transaction

from ledger.models import Account
from ledger.posting import Applied, Posting, applied, compute
from ledger.stores.rows import snapshot
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS, SqlStrategy
from locks.hazards import Hazard


class SelectForUpdate(SqlStrategy):
    """Lock the rows inside the transaction that writes them."""

    slug = "select-for-update"
    row_lock_excludes = True
    title = "SELECT … FOR UPDATE"
    source = "A4: the pessimistic lock; PostgreSQL manual, explicit locking (F3)"
    guarantees = "no lost update; the lock ends with its transaction, even if the holder dies"
    breaks_when = "a caller reads before locking, or locks rows in no fixed order"
    round_trips = "5, in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS
    nowait = False  # wait for a locked row

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        return self.attempt(posting)

    def attempt(self, posting: Posting, retries: int = 0) -> Applied:
        with transaction.atomic(using=self.db):
            read = self.store.complete(posting, {row.number: snapshot(row) for row in self.lock(posting)})
            changes = compute(posting, read)
            self.think()
            self.store.put(changes)
        return applied(changes, retries)

    def lock(self, posting: Posting) -> Iterable[Account]:
        """Lock the posting's rows in one statement and one common order, which prevents deadlocks. With
        `ordered: false`: one row after the other, as the posting lists them."""
        rows = (
            Account.objects.using(self.db).select_for_update(nowait=self.nowait).filter(book_id=self.book.pk)
        )
        if self.settings.ordered:
            return rows.filter(number__in=posting.accounts).order_by("number")
        return [row for number in self.order(posting) for row in rows.filter(number=number)]
