"""advisory-lock-session: a lock on a number, which the database session holds until it says otherwise.

    A: SELECT pg_advisory_lock(h(book:account)); SELECT → 100
    B:                  SELECT pg_advisory_lock(…)        (waits in the database)
    A: BEGIN; UPDATE balance = 110; INSERT entry; COMMIT; SELECT pg_advisory_unlock(…)
    B:                  SELECT → 110 …

Guarantees   no lost update among the callers that take it, as long as a caller keeps its session. The lock ends with
             the session, even when the holder dies, and spans several transactions.
Breaks when  a pooler gives each transaction another session (PgBouncer's transaction mode): the session that holds the
             lock is somebody else's next one, and is granted it again. The release reaches a session that holds
             nothing, returns false, and the lock stays (museum case 27). `advisory-lock` has the form that keeps.
Costs        lock, SELECT, BEGIN, UPDATE, INSERT, COMMIT, unlock: 7 round trips.
Source       PostgreSQL, "Explicit Locking: Advisory Locks"; PgBouncer, "SQL feature map for pooling modes".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from django.db import connections

from ledger.posting import Applied, Posting, applied, compute
from ledger.strategies.sql import UNHURRIED_HAZARDS, SqlStrategy
from locks.hazards import Hazard

LOCK = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"
UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"


class AdvisoryLockSession(SqlStrategy):
    """Lock the accounts' names for the session, then read and write as `no-lock` does."""

    slug = "advisory-lock-session"
    title = "pg_advisory_lock"
    source = "PostgreSQL manual, advisory locks (F3); museum case 27"
    guarantees = "no lost update among callers that take it and keep their session"
    breaks_when = "a pooler gives each transaction another session"
    round_trips = "7"
    withstands: ClassVar[frozenset[Hazard]] = UNHURRIED_HAZARDS | {
        Hazard.PAUSE,
        Hazard.STAMPEDE,
        Hazard.DEADLOCK,
    }
    stores = ("postgres",)

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        with self.locked([f"{self.book.pk}:{number}" for number in self.order(posting)]):
            changes = compute(posting, self.store.read(posting))
            self.think()
            self.store.write(changes)
        return applied(changes)

    @contextmanager
    def locked(self, names: list[str]) -> Iterator[None]:
        with connections[self.db].cursor() as cursor:
            taken: list[str] = []
            try:
                for name in names:
                    cursor.execute(LOCK, [name])
                    taken.append(name)
                yield
            finally:
                for name in reversed(taken):
                    cursor.execute(UNLOCK, [name])
