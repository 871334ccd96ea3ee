"""select-for-update-function: all of `select-for-update` inside the database, one round trip away.

    A: SELECT … FROM ledger_post(…)     → locks the row, reads 100, writes 110, inserts the entry, commits
    B:                  SELECT … FROM ledger_post(…)     (waits in the database for microseconds, not round trips)

Guarantees   what `select-for-update` guarantees. The row is locked only while the function runs. No network and no
             Python lies between the lock and the commit, so a slow client keeps no other caller waiting.
Breaks when  the business decision needs something that the database does not have (the think time comes *before*
             the call here), or a rule is changed in Python and forgotten in SQL. Tools that look for locks in the
             client's statements do not find this one.
Costs        1 round trip, and a second language in the code base.
Source       PostgreSQL, "PL/pgSQL"; the function is in ledger/migrations/ledger_post.sql.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import DatabaseError, IntegrityError, connections

from ledger.models.ids import fresh
from ledger.posting import Applied, Posting, Refused, Stored, worker
from ledger.stores.arrays import plain, quoted
from ledger.stores.prepared import Prepared
from ledger.stores.rows import key_taken
from ledger.strategies.sql import DATABASE_HAZARDS, SqlStrategy, code_of
from locks.hazards import Hazard

CALL = Prepared(
    "ledger_post",
    "SELECT balance_before FROM ledger_post(%(book)s, %(numbers)s, %(amounts)s, %(entries)s, %(key)s,"
    " %(fingerprint)s, %(worker)s)",
    book="uuid",
    numbers="text[]",
    amounts="bigint[]",
    entries="uuid[]",
    key="text",
    fingerprint="text",
    worker="text",
)
REFUSED = {"LU001", "22003"}  # raised by the function; numeric_value_out_of_range


class SelectForUpdateFunction(SqlStrategy):
    """One call of a function that locks, reads, checks and writes."""

    slug = "select-for-update-function"
    row_lock_excludes = True
    title = "SELECT … FOR UPDATE in a database function"
    source = "ours: A4 as one function in the database"
    guarantees = "no lost update, and no client between the lock and the commit"
    breaks_when = "the decision needs something that the database does not have"
    round_trips = "1"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    stores = ("postgres",)

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        self.think()
        lines = sorted(posting.lines, key=lambda line: line.account)  # one common order: no deadlock
        entries = [fresh() for _ in lines]
        given = {
            "book": self.book.pk.hex,
            "numbers": quoted([line.account for line in lines]),
            "amounts": plain([str(line.amount) for line in lines]),
            "entries": plain([entry.hex for entry in entries]),
            "key": posting.key,
            "fingerprint": posting.fingerprint,
            "worker": worker(),
        }
        try:
            rows = CALL.rows(connections[self.db], given)
        except IntegrityError:
            with key_taken(posting.key):
                raise
        except DatabaseError as error:
            if code_of(error) in REFUSED:
                raise Refused(str(error).splitlines()[0]) from error
            raise
        return Applied(
            tuple(
                Stored(entry, line.account, line.amount, int(before), int(before) + line.amount)
                for entry, line, (before,) in zip(entries, lines, rows, strict=True)
            )
        )
