"""insert-lock: the one that inserts the row has the lock. Deleting the row gives it back.

    A: INSERT lock ('A1') → 1 row
    B:                  INSERT lock ('A1') → duplicate key … again every 50 ms
    A: read, write, DELETE lock ('A1')
    B:                  INSERT lock ('A1') → 1 row

Guarantees   mutual exclusion, as long as nobody dies: a unique key lets one in.
Breaks when  the holder crashes, its session ends, or only the reply to its COMMIT is lost: the row stays, and everyone
             waits for ever. Anyone's DELETE by name frees the lock. Inside the caller's own transaction the second
             INSERT waits for the first one's commit instead of failing.
Costs        1 INSERT and 1 DELETE, each with a commit of its own, and 1 INSERT for each poll while waiting.
Source       the field's first idea of a lock in a database: "unique index as a lock" (E8).
"""

from __future__ import annotations

from ledger.lock_tables.base import ELSEWHERE, TableLock
from ledger.models import LockRecord
from locks.hazards import Hazard

#: no lease: a slow holder keeps its lock, a dead one too. On MariaDB a waiter gives up after 50 s if the holder is
#: paused between its INSERT or DELETE and the COMMIT
NO_LEASE_ON_MARIADB = ELSEWHERE | {
    Hazard.CONTENTION,
    Hazard.OVERRUN,
    Hazard.RENEWAL_DIES,
    Hazard.WAITER_INTERRUPTED,
    Hazard.CLOCK_JUMP,
}
LEASELESS_WITHSTANDS = NO_LEASE_ON_MARIADB | {Hazard.PAUSE}


class InsertLock(TableLock):
    """INSERT to lock, DELETE to unlock."""

    slug = "insert-lock"
    title = "A row under a unique key"
    source = "E8: a unique index as a lock"
    guarantees = "mutual exclusion while nobody crashes"
    breaks_when = "the holder crashes: the row stays for ever"
    round_trips = "1 + 1, each with a commit"
    withstands = LEASELESS_WITHSTANDS
    withstands_on_mariadb = NO_LEASE_ON_MARIADB

    def attempt(self) -> bool:
        self.records.create(name=self.name, status=LockRecord.Status.LOCKED)
        return True

    def give_back(self) -> None:
        self.records.filter(name=self.name).delete()
