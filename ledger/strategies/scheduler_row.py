"""scheduler-row: one row for the whole scheduler, locked in the transaction that records which node runs the job.

    A: BEGIN; SELECT 'TRIGGER_ACCESS' FOR UPDATE; SELECT job → still to do
    B:                  BEGIN; SELECT 'TRIGGER_ACCESS' FOR UPDATE       (waits in the database)
    A: UPDATE job = taken; COMMIT … runs the job
    B:                  SELECT job → taken: refused

Guarantees   no lost update, and no job is taken twice. The row lock belongs to the transaction that writes: when a
             node crashes, its session ends, and its lock with it. There is no lease and no clock.
Breaks when  another writer changes the job's row without the lock, or the lock is taken inside a caller's
             transaction under REPEATABLE READ that has already read the job. The job's effects in *another system*
             are outside the transaction: docs/daily-job.md.
Costs        BEGIN, SELECT, SELECT, UPDATE, INSERT, COMMIT: 6 round trips. All jobs of the scheduler, here all
             accounts of the book, wait for one row.
Source       Quartz, JobStoreTX: the table QRTZ_LOCKS and its row TRIGGER_ACCESS (C2).
"""

from __future__ import annotations

from typing import ClassVar

from django.db import transaction

from ledger.models import LockRecord
from ledger.posting import Applied, Posting, applied, compute
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS, SqlStrategy
from locks.hazards import Hazard


class SchedulerRow(SqlStrategy):
    """Lock a row of the lock table FOR UPDATE, in the transaction that writes."""

    slug = "scheduler-row"
    title = "A scheduler's lock row, FOR UPDATE"
    source = "C2: a scheduler with a lock row, as Quartz has it"
    guarantees = "no lost update; the lock ends with its transaction, even if the holder dies"
    breaks_when = "another writer does not take the lock; the effect is in another system"
    round_trips = "6, in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        with transaction.atomic(using=self.db):
            self.lock_scheduler()
            changes = compute(posting, self.store.read(posting))
            self.think()
            self.store.put(changes)
        return applied(changes)

    def lock_scheduler(self) -> None:
        """Lock the scheduler's row. As in Quartz, a node that finds none inserts it."""
        rows = LockRecord.objects.using(self.db).select_for_update()
        rows.get_or_create(name=f"TRIGGER_ACCESS:{self.book.pk}")
