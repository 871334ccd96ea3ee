"""repeatable-read: one snapshot for the whole transaction. On PostgreSQL, a write over a newer row is an error.

    A: BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT → 100
    B:                  BEGIN; SET TRANSACTION …; SELECT → 100
    A: UPDATE balance = 110; INSERT entry; COMMIT
    B:                  UPDATE balance = 120 → error 40001 (concurrent update); ROLLBACK; start again from BEGIN

Guarantees   no lost update on PostgreSQL: the first updater wins, and the second one gets an error.
Breaks when  the same code runs on MariaDB (`repeatable-read-innodb`: no error, and the update is lost); two
             transactions write different rows under a rule that covers both (write skew: `serializable`); the
             retry does not begin at BEGIN. A caller that has used up its retries gets "busy".
Costs        BEGIN, SET, SELECT, UPDATE, INSERT, COMMIT for each attempt. On a hot account most attempts fail.
Source       PostgreSQL, "Transaction Isolation: Repeatable Read"; Berenson et al. 1995 (snapshot isolation).
"""

from __future__ import annotations

from typing import ClassVar

from django.db import connections, transaction

from ledger.posting import Applied, Posting, applied, compute
from ledger.strategies.sql import DATABASE_HAZARDS, START_AGAIN, SqlStrategy, outrun_by
from locks.hazards import Hazard


class RepeatableRead(SqlStrategy):
    """`no-lock` in a REPEATABLE READ transaction, with retries."""

    slug = "repeatable-read"
    title = "REPEATABLE READ with retries (PostgreSQL)"
    source = "PostgreSQL manual, Repeatable Read (F3); Berenson et al. 1995 (F9)"
    guarantees = "no lost update on PostgreSQL: the second updater gets an error"
    breaks_when = "the same code runs on MariaDB; a rule spans two rows"
    round_trips = "6 for each attempt"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    stores: ClassVar[tuple[str, ...]] = ("postgres",)
    level = "REPEATABLE READ"

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        return self.insist(lambda number: self.attempt(posting, number), "could not be serialized")

    def attempt(self, posting: Posting, retries: int) -> Applied:
        mysql = connections[self.db].vendor == "mysql"
        if mysql:
            self.set_level()  # on MariaDB it applies to the next transaction, and is an error inside one
        # durable: the level cannot be set inside an outer transaction
        with outrun_by(START_AGAIN), transaction.atomic(using=self.db, durable=True):
            if not mysql:
                self.set_level()  # for this transaction, before its first query
            changes = compute(posting, self.store.read(posting))
            self.think()
            self.store.put(changes)
        return applied(changes, retries)

    def set_level(self) -> None:
        with connections[self.db].cursor() as cursor:
            cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {self.level}")
