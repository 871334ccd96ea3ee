"""select-for-update-function: the whole of `select-for-update` inside the database, one round trip away.

    A: SELECT … FROM ledger_post(…)     → locks the row, reads 100, writes 110, inserts the entry, commits
    B:                  SELECT … FROM ledger_post(…)     (waits in the database for microseconds, not round trips)

Guarantees   what `select-for-update` guarantees. The row is locked while the function runs: no network and no
             Python between the lock and the commit, so a slow client makes nobody wait.
Breaks when  the business's decision needs something that the database has not got (the think time is *before*
             the call here), or rules are changed in Python and forgotten in SQL. Tools that look for locks in
             the client's statements do not see this one.
Costs        1 round trip; a second language in the code base.
Source       PostgreSQL, "PL/pgSQL"; the function is in ledger/migrations/ledger_post.sql.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.db import DatabaseError, connections

from ledger.posting import Applied, Posting, Refused, Stored, worker
from ledger.prepared import prepared
from ledger.stores.rows import key_taken
from ledger.strategies.sql import DATABASE_HAZARDS, SqlStrategy, code_of
from locks.hazards import Hazard

CALL = """
SELECT entry, number, amount, balance_before, balance_after
FROM ledger_post(%s, %s::text[], %s::bigint[], %s::uuid[], %s, %s, %s)
"""
REFUSED = {"LU001", "22003"}  # raised by the function; numeric_value_out_of_range


class SelectForUpdateFunction(SqlStrategy):
    """One call of a function that locks, reads, checks, writes."""

    slug = "select-for-update-function"
    title = "SELECT … FOR UPDATE in a database function"
    source = "PostgreSQL: PL/pgSQL"
    guarantees = "no lost update, and no client between the lock and the commit"
    breaks_when = "the decision needs what the database has not got"
    round_trips = "1"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    stores = ("postgres",)

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        self.think()
        lines = sorted(posting.lines, key=lambda line: line.account)  # one order for everyone: no deadlock
        columns = [x.account for x in lines], [x.amount for x in lines]
        given = [self.book.pk, *columns, [uuid4() for _ in lines], posting.key, posting.fingerprint, worker()]
        try:
            cursor = prepared(connections[self.db])
            with key_taken(posting.key):
                cursor.execute(CALL, given)
                return Applied(tuple(Stored(*row) for row in cursor.fetchall()))
        except DatabaseError as error:
            if code_of(error) in REFUSED:
                raise Refused(str(error).splitlines()[0]) from error
            raise
