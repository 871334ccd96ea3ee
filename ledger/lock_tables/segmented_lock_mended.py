"""segmented-lock-mended: version 3 with an owner, the database's clock and a transaction of its own.

    A: … works longer than its lease …
    B:                  UPDATE owner = 'b7…', deadline = … WHERE name = … AND deadline < now() → 1 row; COMMIT
    A: UPDATE status = free WHERE name = … AND owner = 'a3…' → 0 rows: LockLost        B keeps its lock

Guarantees   mutual exclusion while the section fits the lease. A crashed holder's lock ends with its lease. Nobody
             frees another's lock, and a holder that is too late hears of it. It refuses to be taken inside a caller's
             transaction (RuntimeError), where its row would be seen too late or not at all. When the reply to a
             COMMIT is lost, it frees what it may have written; if it cannot, the lease ends that.
Breaks when  the section, or a pause inside it, outlasts the lease: the holder writes without the lock. The cure is
             a fencing number, or a lock in the transaction that writes (`select-for-update`).
Costs        3 statements and a commit to lock, 1 to unlock.
Source       the lock-table article's version 3 (E12), mended here.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from ledger.lock_tables.base import ELSEWHERE
from ledger.lock_tables.segmented_lock import SegmentedLock
from ledger.models import LockRecord
from locks.errors import LockLost, LockNotHeld
from locks.hazards import Hazard


class ServerTime(Now):
    """The database's clock. On MariaDB in UTC: NOW() goes by the session's time zone, and back once a year."""

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


class SegmentedLockMended(SegmentedLock):
    """`segmented-lock` with an owner."""

    slug = "segmented-lock-mended"
    title = "Lock table behind 100 central rows, with an owner"
    source = "ours, after E12"
    guarantees = "mutual exclusion while the section fits the lease; nobody frees another's lock"
    breaks_when = "section or pause outlasts the lease"
    withstands = ELSEWHERE | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.RENEWAL_DIES,
        Hazard.RENEWAL_LIVES,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
    }

    def __init__(
        self, name: str, *, sql: str = "default", lease: float = 10.0, poll: float = 0.05, isolation: str = ""
    ) -> None:
        """`lease`: seconds, by the database's clock."""
        super().__init__(name, sql=sql, lease=lease, poll=poll, isolation=isolation)
        self._valid_until = 0.0

    def acquire(self, timeout: float | None = None) -> bool:
        if transaction.get_connection(self.sql).in_atomic_block:
            raise RuntimeError(f"{self.name}: taken inside a transaction; take the lock around it")
        return super().acquire(timeout)

    def attempt(self) -> bool:
        self.lock_centre()
        asked, token = time.monotonic(), secrets.token_hex(16)
        mine = self.records.filter(name=self.name)
        if not mine.exists():
            self.records.create(name=self.name)
        # one conditional UPDATE: it sees the newest row, whatever a snapshot says
        free = mine.filter(~Q(status=LockRecord.Status.LOCKED) | Q(deadline__lt=ServerTime()))
        if not free.update(status=LockRecord.Status.LOCKED, owner=token, deadline=self._deadline()):
            return False
        self.token, self._valid_until = token.encode(), asked + self.lease
        return True

    def _try(self) -> bool:
        before = self.token
        try:
            return super()._try()
        except BaseException:
            if self.token != before:  # it was written; perhaps only the reply to the COMMIT was lost
                with suppress(DatabaseError, InterfaceError):  # if this fails as well, the lease ends it
                    self._mine().update(status=LockRecord.Status.FREE, owner="")
                self.token = before
            raise

    def release(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when the lease had ended and another has it, or had it."""
        self._check("release")
        try:
            super().release()
        finally:
            self.token = None

    def give_back(self) -> None:
        if not self._mine().update(status=LockRecord.Status.FREE, owner=""):
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )

    def extend(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when another has it by now."""
        self._check("extend")
        asked = time.monotonic()
        with self.typed_errors():
            extended = self._mine().update(deadline=self._deadline())
        if not extended:
            self._held = False
            raise LockLost(f"{self.name}: the lease ended before the extension; stop writing")
        self._valid_until = asked + self.lease

    @property
    def held(self) -> bool:
        """False too when the lease is over by this process's own clock."""
        return self._held and time.monotonic() < self._valid_until

    def _check(self, verb: str) -> None:
        if self.token is None:
            raise LockNotHeld(f"{self.name}: {verb} without holding it")

    def _mine(self) -> Any:
        owner = self.token.decode() if self.token else "nobody"
        return self.records.filter(name=self.name, owner=owner)

    def _deadline(self) -> Any:
        return ServerTime() + timedelta(seconds=self.lease)
