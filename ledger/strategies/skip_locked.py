"""skip-locked: of several equivalent rows, take the first one that is not locked.

    A: UPDATE … WHERE id = (SELECT id … FOR UPDATE SKIP LOCKED LIMIT 1)      takes X/0
    B: UPDATE … WHERE id = (SELECT id … FOR UPDATE SKIP LOCKED LIMIT 1)      X/0 is locked: takes X/1, waits for nobody

    with one row, or on a row that the caller *needs*:
    B: SELECT … WHERE number = 'X' FOR UPDATE SKIP LOCKED → no row        "no such account"? No: somebody has it

Guarantees   what `segmented-balance` guarantees, and no caller waits while a row is free. If all rows are locked,
             the caller waits for one of them.
Breaks when  it is used for a row that no other row can replace: an empty answer means "locked" or "not there", and
             the caller cannot tell which. It is for queues and for interchangeable rows, not for an account. Since
             any row may take a posting, no constraint over one row detects a request that was sent twice. The
             constraint of the entries is over book and key, and makes the second request wait for the first one's
             commit.
Costs        1 round trip, as `segmented-balance`, and 8 rows are looked at.
Source       PostgreSQL 9.5, SELECT: "SKIP LOCKED … can be used to avoid lock contention with multiple consumers
             accessing a queue-like table".
"""

from __future__ import annotations

from typing import ClassVar

from django.db import connections
from msgspec.structs import replace

from ledger.posting import Line, Posting, Stored
from ledger.stores.arrays import quoted
from ledger.stores.prepared import Prepared
from ledger.stores.segments import row_of
from ledger.strategies.atomic_update import ADD_STATEMENT, TYPES, in_one_statement
from ledger.strategies.segmented_balance import SEGMENTS, SegmentedBalance
from ledger.strategies.sql import DATABASE_HAZARDS
from locks.hazards import Hazard

ANY_FREE = """id = (
    SELECT id FROM ledger_account WHERE book_id = %(book)s AND number = ANY(%(rows)s)
    AND (%(amount)s >= 0 OR floor IS NULL OR balance + %(amount)s >= floor)
    ORDER BY number FOR UPDATE SKIP LOCKED LIMIT 1)"""
ADD = Prepared(
    "ledger_add_any",
    ADD_STATEMENT.format(which=ANY_FREE, told=", (SELECT number FROM written)"),
    **TYPES,
    rows="varchar[]",
)


class SkipLocked(SegmentedBalance):
    """`segmented-balance` that takes the first free row."""

    slug = "skip-locked"
    title = "The first free one of 8 rows (SKIP LOCKED)"
    source = "PostgreSQL manual, SKIP LOCKED (F3)"
    guarantees = "as segmented-balance; no caller waits while a row is free"
    breaks_when = "it is used for a row that no other row can replace"
    round_trips = "1; near the floor 20 in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    stores = ("postgres",)

    def add(self, posting: Posting, line: Line, place: int = 0) -> tuple[Stored, ...]:
        rows = quoted([row_of(line.account, segment) for segment in range(SEGMENTS)])
        found = in_one_statement(
            self.store, connections[self.db], posting, line, place, statement=ADD, rows=rows
        )
        if found is None:
            return super().add(posting, line, place)
        stored, (number,) = found
        return (replace(stored, account=number.decode()),)
