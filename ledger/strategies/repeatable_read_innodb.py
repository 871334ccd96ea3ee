"""repeatable-read-innodb: the same statements as on PostgreSQL, but the update is lost. MariaDB's and MySQL's default.

    A: SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN; SELECT → 100
    B:                  SET TRANSACTION …; BEGIN; SELECT → 100
    A: UPDATE balance = 110; INSERT entry; COMMIT
    B:                  SELECT → 100 still (its snapshot)
    B:                  UPDATE balance = 120 → 1 row, no error (a write sees the newest row); COMMIT
                        A's 10 are gone

Guarantees   repeatable reads. A write goes over the newest row, whatever the snapshot says: InnoDB detects no lost
             update.
Breaks when  two callers want one account at the same time.
Costs        SET, SET TRANSACTION, BEGIN, SELECT, UPDATE, INSERT, COMMIT, autocommit, SET: 9 round trips.
Source       MariaDB, `innodb_snapshot_isolation` (off by default in 10.11, on since 11.6.2). With it on, the second
             writer gets error 1020, much as on PostgreSQL: `repeatable-read-innodb-snapshot`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from django.db import Error, connections

from ledger.posting import Applied, Posting
from ledger.strategies.repeatable_read import RepeatableRead
from locks.hazards import Hazard


class RepeatableReadInnodb(RepeatableRead):
    """`repeatable-read` on InnoDB with its default settings."""

    slug = "repeatable-read-innodb"
    title = "REPEATABLE READ with retries (MariaDB 10.11, default settings)"
    source = "MariaDB manual, innodb_snapshot_isolation=OFF (F8)"
    guarantees = "repeatable reads; a write based on them is not protected"
    breaks_when = "two callers want one account at the same time"
    round_trips = "9 for each attempt"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    stores = ("mariadb",)
    snapshot_isolation = "OFF"

    def attempt(self, posting: Posting, retries: int) -> Applied:
        self.set_snapshot_isolation(self.snapshot_isolation)
        try:
            return super().attempt(posting, retries)
        finally:  # another book may use this connection next; a broken connection takes its setting with it
            with suppress(Error):
                self.set_snapshot_isolation("DEFAULT")

    def set_snapshot_isolation(self, value: str) -> None:
        with connections[self.db].cursor() as cursor:
            cursor.execute(f"SET SESSION innodb_snapshot_isolation = {value}")
