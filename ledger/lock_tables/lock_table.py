"""lock-table: look for the row and lock it. If it is there, update it, otherwise insert it. Version 1 of E7.

    A: BEGIN; SELECT … WHERE name = 'A1' FOR UPDATE → nothing; INSERT; COMMIT        A has the lock
    B:                  BEGIN; SELECT … FOR UPDATE → a row, locked … again every 50 ms
    A: … work …; UPDATE status = free
    B:                  BEGIN; SELECT … FOR UPDATE → a row, free; UPDATE status = locked; COMMIT

    on InnoDB under REPEATABLE READ, MySQL's default, while the row is not there yet:
    A: SELECT … FOR UPDATE → nothing, and a lock on the gap where the row would be
    B:                  SELECT … FOR UPDATE → nothing, and a lock on the same gap (gap locks do not exclude each other)
    A: INSERT (waits for B's gap lock)
    B:                  INSERT (waits for A's) → error 1213: deadlock found

Guarantees   mutual exclusion, as long as nobody dies.
Breaks when  the holder crashes, or the reply to its COMMIT is lost: no deadline, so everyone waits for ever. A release
             by name frees anybody's lock. The article itself names four problems (E8):
             1. Production forbids physical deletes. So the release here is an UPDATE; `insert-lock` deletes.
             2. Two callers that insert at once get a unique-key error, which serves as control flow. PostgreSQL aborts
                the transaction on it, so each attempt needs a transaction, or a savepoint, of its own.
             3. The crash above.
             4. A counter built the same way deadlocks in the same gap, for each name that is not there yet.
Costs        2 statements and a commit to lock, 1 to unlock, 1 to look while waiting.
Source       the lock-table article, version 1 (E7, E8): pseudo-code that ends at update and insert. What is updated,
             what a refusal looks like and the release are ours.
"""

from __future__ import annotations

from ledger.lock_tables.base import TableLock
from ledger.lock_tables.insert_lock import LEASELESS_WITHSTANDS, NO_LEASE_ON_MARIADB
from ledger.models import LockRecord


class LockTable(TableLock):
    """SELECT … FOR UPDATE, then UPDATE or INSERT."""

    slug = "lock-table"
    title = "Lock table: select for update, then update or insert"
    source = "E7, E8: version 1; its release is ours"
    guarantees = "mutual exclusion while nobody crashes"
    breaks_when = "the holder crashes; InnoDB's gap locks deadlock under REPEATABLE READ"
    round_trips = "2 + 1, each with a commit"
    withstands = LEASELESS_WITHSTANDS
    withstands_on_mariadb = NO_LEASE_ON_MARIADB

    def attempt(self) -> bool:
        record = self.records.select_for_update().filter(name=self.name).first()
        if record is None:
            self.records.create(name=self.name, status=LockRecord.Status.LOCKED)
        elif record.status == LockRecord.Status.LOCKED:
            return False
        else:
            self.records.filter(pk=record.pk).update(status=LockRecord.Status.LOCKED)
        return True

    def give_back(self) -> None:
        self.records.filter(name=self.name).update(status=LockRecord.Status.FREE)  # whose it is, nobody asks
