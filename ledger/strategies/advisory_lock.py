"""advisory-lock: a lock on a number, which the database holds until the end of the transaction.

    A: BEGIN; SELECT pg_advisory_xact_lock(h(book:account)); SELECT → 100
    B:                  BEGIN; SELECT pg_advisory_xact_lock(…)        (waits in the database)
    A: UPDATE balance = 110; INSERT entry; COMMIT (and the lock is free)
    B:                  SELECT → 110 …

Guarantees   no lost update among the callers that take it. The lock ends with its transaction, after the commit,
             even when the holder dies. It locks a name, so it also works when no row exists yet.
Breaks when  one writer does not take it: the lock is advisory. Under REPEATABLE READ the waiting statement has
             already taken the snapshot, so the read after it is stale (the write then fails with 40001). The
             session-level form (`pg_advisory_lock`) outlives the transaction, and behind a transaction pooler no
             client owns it (`advisory-lock-session`). Two names with the same 64-bit hash only wait for each other.
Costs        BEGIN, lock, SELECT, UPDATE, INSERT, COMMIT: 6 round trips.
Source       PostgreSQL, "Explicit Locking: Advisory Locks".
"""

from __future__ import annotations

from typing import ClassVar

from django.db import connections, transaction

from ledger.posting import Applied, Posting, applied, compute
from ledger.strategies.sql import DATABASE_HAZARDS, SqlStrategy
from locks.hazards import Hazard

# ordered by hash, not by name: two names may share a hash, and one common order prevents deadlocks
LOCK = """
SELECT pg_advisory_xact_lock(hash)
FROM (SELECT DISTINCT hashtextextended(name, 0) AS hash FROM unnest(%s::text[]) AS name ORDER BY hash) AS ordered
"""


class AdvisoryLock(SqlStrategy):
    """Lock the accounts' names, then read and write as `no-lock` does."""

    slug = "advisory-lock"
    title = "pg_advisory_xact_lock"
    source = "PostgreSQL manual, advisory locks (F3)"
    guarantees = "no lost update among callers that take it; it ends with the transaction"
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
