"""serializable: read and write as `no-lock` does, and let the database detect conflicts.

    A: BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT → 100
    B:                  BEGIN; SET TRANSACTION …; SELECT → 100
    A: UPDATE balance = 110; INSERT entry; COMMIT
    B:                  UPDATE balance = 120 → error 40001 (could not serialize); ROLLBACK; start again from BEGIN

Guarantees   the result equals that of some serial order of the transactions: no lost update, and no write skew (two
             accounts that share one limit). This holds even for code that was written without concurrency in mind.
Breaks when  one writer uses a weaker level; the retry does not begin at BEGIN (a read kept from the failed attempt
             is stale); an error in the middle is swallowed. A caller that has used up its retries gets "busy".
Costs        BEGIN, SET, SELECT, UPDATE, INSERT, COMMIT for each attempt. On a hot account most attempts fail.
             On MariaDB every SELECT share-locks its row, so two readers that both want to write deadlock
             (error 1213), and one of them starts again.
Source       PostgreSQL, "Transaction Isolation: Serializable"; Ports & Grittner 2012.
"""

from __future__ import annotations

from typing import ClassVar

from ledger.strategies.repeatable_read import RepeatableRead
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS
from locks.hazards import Hazard


class Serializable(RepeatableRead):
    """`no-lock` in a SERIALIZABLE transaction, with retries."""

    slug = "serializable"
    title = "SERIALIZABLE with retries"
    source = "PostgreSQL manual, Serializable (F3); Ports and Grittner 2012 (F9)"
    guarantees = "no lost update and no write skew"
    breaks_when = "one writer uses a weaker level, or a retry reuses an old read"
    round_trips = "6 for each attempt"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS
    stores = ("postgres", "mariadb")
    level = "SERIALIZABLE"
