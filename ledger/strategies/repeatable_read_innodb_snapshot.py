"""repeatable-read-innodb-snapshot: REPEATABLE READ on MariaDB, with the setting that makes it detect lost updates.

    A: BEGIN; SELECT → 100                              (SET SESSION innodb_snapshot_isolation = ON)
    B:                  BEGIN; SELECT → 100
    A: UPDATE balance = 110; INSERT entry; COMMIT
    B:                  UPDATE balance = 120 → error 1020 (record has changed since last read); starts again

Guarantees   no lost update: the first updater wins, and the second one gets an error, as on PostgreSQL.
Breaks when  one session lacks the setting (it is per session, off by default in 10.11, and unknown to MySQL); two
             transactions write different rows under a rule that covers both (write skew: `serializable`). A
             caller that has used up its retries gets "busy".
Costs        as `repeatable-read-innodb` for each attempt. On a hot account most attempts fail.
Source       MariaDB, `innodb_snapshot_isolation` (10.6.18, 10.11.8 and later).
"""

from __future__ import annotations

from typing import ClassVar

from ledger.strategies.repeatable_read_innodb import RepeatableReadInnodb
from ledger.strategies.sql import MARIADB_HAZARDS
from locks.hazards import Hazard


class RepeatableReadInnodbSnapshot(RepeatableReadInnodb):
    """`repeatable-read` on InnoDB with snapshot isolation."""

    slug = "repeatable-read-innodb-snapshot"
    title = "REPEATABLE READ with retries (MariaDB, innodb_snapshot_isolation)"
    source = "MariaDB manual, innodb_snapshot_isolation=ON (F8)"
    guarantees = "no lost update: the second updater gets error 1020"
    breaks_when = "one session lacks the setting; a rule spans two rows"
    withstands: ClassVar[frozenset[Hazard]] = MARIADB_HAZARDS
    snapshot_isolation = "ON"
