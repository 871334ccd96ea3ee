"""advisory-lock: a lock on a number that the database keeps for us, until the end of the transaction.

    A: BEGIN; SELECT pg_advisory_xact_lock(h(book:account)); SELECT → 100
    B:                  BEGIN; SELECT pg_advisory_xact_lock(…)        (waits in the database)
    A: UPDATE balance = 110; INSERT entry; COMMIT (and the lock is free)
    B:                  SELECT → 110 …

Guarantees   no lost update among those who take it: it ends with its transaction, after the commit, whoever
             dies. It locks a name, also one for which there is no row yet.
Breaks when  one single writer does not take it: it is advice. Under REPEATABLE READ the waiting statement has
             already taken the snapshot, so the read after it is stale (the write then fails with 40001). The
             session-level form (`pg_advisory_lock`) outlives the transaction, and behind a transaction pooler it
             belongs to nobody. Two names with one 64-bit hash only wait for each other.
Costs        BEGIN, lock, SELECT, UPDATE, INSERT, COMMIT: 6 round trips.
Source       PostgreSQL, "Explicit Locking: Advisory Locks".
"""

from __future__ import annotations

from typing import ClassVar

from django.db import connections, transaction

from ledger.posting import Applied, Posting, applied, compute
from ledger.strategies.sql import DATABASE_HAZARDS, SqlStrategy
from locks.hazards import Hazard

# in the order of the hashes, not of the names: two names may share a hash, and one order prevents deadlocks
LOCK = """
SELECT pg_advisory_xact_lock(hash)
FROM (SELECT DISTINCT hashtextextended(name, 0) AS hash FROM unnest(%s::text[]) AS name ORDER BY hash) AS ordered
"""


class AdvisoryLock(SqlStrategy):
    """Lock the accounts' names, then read and write as the unprotected one does."""

    slug = "advisory-lock"
    title = "pg_advisory_xact_lock"
    source = "PostgreSQL manual, advisory locks (F3)"
    guarantees = "no lost update among those who take it; it ends with the transaction"
    breaks_when = "one writer does not take it"
    round_trips = "6, in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    stores = ("postgres",)

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        with transaction.atomic(using=self.db):
            with connections[self.db].cursor() as cursor:
                cursor.execute(LOCK, [[f"{self.book.pk}:{number}" for number in posting.accounts]])
            changes = compute(posting, self.store.read(posting))
            self.think()
            self.store.put(changes)
        return applied(changes)
