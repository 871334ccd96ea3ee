"""lock-table: look for the row, locked; if it is not there, insert it. Version 1 of E7.

    A: BEGIN; SELECT … WHERE name = 'A1' FOR UPDATE → nothing; INSERT; COMMIT        A has the lock
    B:                  BEGIN; SELECT … FOR UPDATE → a row: somebody has it … again
    A: … work …; DELETE                                                             free

    on InnoDB under REPEATABLE READ, MySQL's default:
    A: SELECT … FOR UPDATE → nothing, and a lock on the gap where the row would be
    B:                  SELECT … FOR UPDATE → nothing, and a lock on the same gap (gap locks do not exclude others)
    A: INSERT (waits for B's gap lock)
    B:                  INSERT (waits for A's) → error 1213: deadlock found

Guarantees   mutual exclusion, as long as nobody dies: in the end the unique key lets one in.
Breaks when  the holder crashes, or the reply to its COMMIT is lost: no deadline, no status, the row
             stays for ever. Under REPEATABLE READ on InnoDB two callers that meet before the row exists deadlock,
             and one of them gets an error instead of a lock. A release by name frees whoever's lock it is.
Costs        2 statements and a commit to lock, 1 to unlock; 1 to look while waiting.
Source       the lock-table article, version 1 (E7): "select … for update, else insert".
"""

from __future__ import annotations

from ledger.lock_tables.base import TableLock
from ledger.lock_tables.insert_lock import NO_LEASE


class LockTable(TableLock):
    """SELECT … FOR UPDATE, else INSERT; DELETE to unlock."""

    slug = "lock-table"
    title = "Lock table: select for update, else insert"
    source = "E7: version 1"
    guarantees = "mutual exclusion while nobody crashes"
    breaks_when = "the holder crashes; InnoDB's gap locks deadlock under REPEATABLE READ"
    round_trips = "2 + 1, each with a commit"
    withstands = NO_LEASE

    def attempt(self) -> bool:
        if self.records.select_for_update().filter(name=self.name).first() is not None:
            return False
        self.records.create(name=self.name)
        return True

    def give_back(self) -> None:
        self.records.filter(name=self.name).delete()
