"""centre-lock: lock one central row first, so that no two callers look at a lock's record at once. Version 2.

    A: BEGIN; SELECT 'center_lock' FOR UPDATE; SELECT record → free; UPDATE status = locked, deadline = …; COMMIT
    B:                  BEGIN; SELECT 'center_lock' FOR UPDATE (waits) → SELECT record → locked; COMMIT … again
    A: … work, longer than the lease …
    B:                  SELECT record → the deadline is over; UPDATE status = locked; COMMIT        B has it
    A: UPDATE status = free WHERE name = …        B's lock is free, and C gets in

Guarantees   mutual exclusion while the section fits the lease. No deadlock: everyone begins with the same row.
Breaks when  the holder overruns its lease: its release by name frees its successor's lock (there is no owner column).
             Without a lease it is one year: a crash locks for a year. A plain SELECT reads the record. Inside the
             caller's own transaction (ATOMIC_REQUESTS) under REPEATABLE READ it sees the snapshot of that
             transaction's first read, finds "free", and two sessions hold the lock. The clients' clocks decide
             whether a deadline is over. The table holds counters too: taking the lock sets the counter of that
             name to 0. The article's pseudo-code selects the central row without FOR UPDATE: two callers then find
             the record free, and both get the lock. Its Java code has FOR UPDATE, and so has this one.
Costs        3 statements and a commit to lock, while everyone else's locks wait for the one row; 1 to unlock.
Source       the lock-table article, version 2 (E10). It publishes no release: this one is ours.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from ledger.lock_tables.base import ELSEWHERE, TableLock
from ledger.models import LockRecord
from locks.hazards import Hazard

YEAR = 365 * 24 * 3600.0


class CentreLock(TableLock):
    """A central row FOR UPDATE, then the record with status and deadline."""

    slug = "centre-lock"
    title = "Lock table behind one central row"
    source = "E10: version 2; its release is ours"
    guarantees = "mutual exclusion while the section fits the lease; no deadlock"
    breaks_when = "an overrun frees the successor's lock; in a caller's transaction two hold it"
    round_trips = "3 + 1, each with a commit"
    lease_step = 0.001
    withstands = ELSEWHERE | {Hazard.CONTENTION, Hazard.RENEWAL_DIES}

    def __init__(
        self,
        name: str,
        *,
        sql: str = "default",
        lease: float | None = None,
        poll: float = 0.05,
        isolation: str = "",
    ) -> None:
        """`lease`: seconds; None: the article's one year."""
        super().__init__(name, sql=sql, poll=poll, isolation=isolation)
        self.lease = YEAR if lease is None else lease

    @property
    def centre(self) -> str:
        """The name of the row that is locked first. It is there since the migration."""
        return "center_lock"

    def attempt(self) -> bool:
        self.lock_centre()
        now = timezone.now()
        record = self.records.filter(name=self.name).first()  # a plain SELECT, as published
        taken = {"status": LockRecord.Status.LOCKED, "deadline": now + timedelta(seconds=self.lease)}
        if record is None:
            self.records.create(name=self.name, **taken)
        elif record.status == LockRecord.Status.LOCKED and record.deadline and record.deadline > now:
            return False
        else:
            self.records.filter(name=self.name).update(count=0, **taken)
        return True

    def lock_centre(self) -> None:
        self.records.select_for_update().get(name=self.centre)

    def give_back(self) -> None:
        self.records.filter(name=self.name).update(status=LockRecord.Status.FREE)  # whose it is, nobody asks
