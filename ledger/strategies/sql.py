"""What the strategies on SQL share: their database alias, the errors, and the hazards that a database survives."""

from __future__ import annotations

from ledger.models import Book
from ledger.stores.sql import SqlStore
from ledger.strategies.base import Strategy
from locks.hazards import Hazard

#: The lock and the balance live and die together: nothing that happens to a client, to Redis or to a clock
#: comes between them. A replica that lags is not asked; a deadlock rolls one side back.
DATABASE_HAZARDS = frozenset(Hazard) - {Hazard.REPLICA_LAG}

#: "roll back and start again from BEGIN": serialization_failure and deadlock_detected on PostgreSQL;
#: ER_LOCK_DEADLOCK and ER_CHECKREAD (innodb_snapshot_isolation) on MariaDB
START_AGAIN = {"40001", "40P01", 1213, 1020}


class SqlStrategy(Strategy):
    """A strategy whose accounts are rows."""

    store: SqlStore

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        self.db = self.store.db


def code_of(error: BaseException) -> str | int | None:
    """Return the SQLSTATE (PostgreSQL) or the error number (MariaDB) of Django's database `error`, or None."""
    cause = error.__cause__
    first = cause.args[0] if cause and cause.args else None
    return first if isinstance(first, int) else getattr(cause, "sqlstate", None)
