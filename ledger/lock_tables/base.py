"""What the locks in a table share: a database, a transaction for each attempt, polling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, InterfaceError, OperationalError, connections, transaction
from django.db.models import QuerySet

from ledger.models import LockRecord
from locks.base import Lock
from locks.errors import LockUnavailable
from locks.hazards import Hazard
from locks.timing import poll_until

#: These strike Redis or ZooKeeper, and cannot touch a row. A partition from PostgreSQL leaves the row where it is. A
#: pooler gives each transaction another session, and the row is committed.
ELSEWHERE = frozenset(
    {
        Hazard.SERVER_RESTART,
        Hazard.FAILOVER,
        Hazard.PARTITION,
        Hazard.SPLIT_BRAIN,
        Hazard.TRANSACTION_POOLER,
        Hazard.EVICTION,
        Hazard.ZOOKEEPER_EXPIRY,
    }
)

LEVELS = ("", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


class TableLock(Lock):
    """A lock whose state is a row. One attempt is one short transaction, or a part of the caller's own."""

    def __init__(self, name: str, *, sql: str = "default", poll: float = 0.05, isolation: str = "") -> None:
        """`sql`: Django's alias of the database. `poll`: seconds between two attempts. `isolation`: the level of each
        attempt (empty: the connection's own. Django's default is READ COMMITTED, MySQL's is REPEATABLE READ)."""
        super().__init__(f"{self.slug}:{name}")
        if isolation not in LEVELS:
            raise ValueError(f"isolation: one of {', '.join(filter(None, LEVELS))}, not {isolation!r}")
        self.sql, self.poll, self.isolation = sql, poll, isolation
        self._held = False

    @abstractmethod
    def attempt(self) -> bool:
        """Try to take the lock, inside a transaction."""

    @abstractmethod
    def give_back(self) -> None:
        """Free the row."""

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnavailable when the database broke a deadlock, or cannot be asked. Then this object holds
        nothing. But if only the reply to the COMMIT was lost, the row says that somebody holds the lock, until the
        lease is over, or for ever where there is none."""
        self._held = poll_until(self._try, self.poll, timeout)
        return self._held

    def release(self) -> None:
        """Raises LockUnavailable when the database cannot be asked."""
        self._held = False
        with self.typed_errors():
            self.give_back()

    @property
    def held(self) -> bool:
        return self._held

    @property
    def records(self) -> QuerySet[LockRecord]:
        return LockRecord.objects.using(self.sql)

    def _try(self) -> bool:
        try:
            with self.typed_errors(), self.transaction():
                return self.attempt()
        except IntegrityError:  # the row is there: somebody has it
            return False

    @contextmanager
    def typed_errors(self) -> Iterator[None]:
        try:
            yield
        except (InterfaceError, OperationalError) as error:
            raise LockUnavailable(f"{self.name}: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One attempt's transaction."""
        mysql = connections[self.sql].vendor == "mysql"
        if mysql:
            self._set_isolation()  # MySQL takes it for the next transaction, and refuses it inside one
        with transaction.atomic(using=self.sql):
            if not mysql:
                self._set_isolation()
            yield

    def _set_isolation(self) -> None:
        if self.isolation:
            with connections[self.sql].cursor() as cursor:
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {self.isolation}")
