"""Shared by the SQL strategies: their database alias, the errors, and the hazards that a database survives."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.db import DatabaseError

from ledger.models import Book
from ledger.posting import Posting, Refused
from ledger.stores.sql import SqlStore
from ledger.strategies.base import Outrun, Strategy
from locks.hazards import Hazard

#: those of DATABASE_HAZARDS that keep no caller waiting and take no session away: strategies that give up early, or
#: lock for the session, survive them too
UNHURRIED_HAZARDS = frozenset(
    {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.OVERRUN,
        Hazard.RENEWAL_DIES,
        Hazard.RENEWAL_LIVES,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.SERVER_RESTART,
        Hazard.FAILOVER,
        Hazard.PARTITION,
        Hazard.SPLIT_BRAIN,
        Hazard.LOST_REPLY,
        Hazard.CLOCK_JUMP,
        Hazard.DATABASE_RESTART,
        Hazard.SESSION_KILLED,
        Hazard.ZOOKEEPER_EXPIRY,
        Hazard.CONNECTIONS,
        Hazard.EVICTION,
    }
)
#: The lock and the balance live and die together: nothing that happens to a client, to Redis or to a clock
#: separates them. A lagging replica is never read, and a deadlock rolls one side back. A pooler leaves a transaction
#: its session. On MariaDB who waits for a row gives up after 50 s, so a longer pause of its holder is not among them.
MARIADB_HAZARDS = UNHURRIED_HAZARDS | {Hazard.STAMPEDE, Hazard.DEADLOCK, Hazard.TRANSACTION_POOLER}
#: PostgreSQL waits for ever
DATABASE_HAZARDS = MARIADB_HAZARDS | {Hazard.PAUSE}

#: "roll back and start again from BEGIN": serialization_failure and deadlock_detected on PostgreSQL;
#: ER_LOCK_DEADLOCK and ER_CHECKREAD (innodb_snapshot_isolation) on MariaDB
START_AGAIN: frozenset[str | int] = frozenset({"40001", "40P01", 1213, 1020})
#: a locked row, by NOWAIT or by the session's lock time-out: lock_not_available; ER_LOCK_WAIT_TIMEOUT. InnoDB then
#: undoes only the statement, and the strategy's own transaction undoes the rest
LOCKED: frozenset[str | int] = frozenset({"55P03", 1205})
#: numeric_value_out_of_range; ER_DATA_OUT_OF_RANGE
OUT_OF_RANGE = {"22003", 1690}


class SqlStrategy(Strategy):
    """A strategy that keeps each account in rows of a table."""

    store: SqlStore

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        self.db = self.store.db


def code_of(error: BaseException) -> str | int | None:
    """Return the SQLSTATE (PostgreSQL) or the error number (MariaDB) of Django's database `error`, or None."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, int) else getattr(error.__cause__, "sqlstate", None)


@contextmanager
def outrun_by(codes: Collection[str | int]) -> Iterator[None]:
    """Raise Outrun for database errors with these codes. Wraps the attempt's transaction, which is rolled back."""
    try:
        yield
    except DatabaseError as error:
        if code_of(error) in codes:
            raise Outrun(str(error)) from error
        raise


@contextmanager
def in_range(posting: Posting) -> Iterator[None]:
    """Raise Refused for a sum that does not fit in a BIGINT. Wraps the posting's transaction, which is rolled back."""
    try:
        yield
    except DatabaseError as error:
        if code_of(error) in OUT_OF_RANGE:
            raise Refused(f"{posting.key}: the balance would leave the range of BIGINT") from error
        raise
