"""fenced: each grant of the lock has a number, and the account accepts only the highest number that it has seen.

    A: lock → 33; UPDATE … SET fence = 33 WHERE fence < 33 → 1 row; SELECT → 100   (paused past the lease)
    B:                  lock → 34; UPDATE … SET fence = 34 WHERE fence < 34 → 1 row; SELECT → 100
    B:                  UPDATE … SET balance = 120 WHERE fence = 34 → 1 row
    A: UPDATE … SET balance = 110 WHERE fence = 33 → 0 rows        refused; A locks again and reads again

Guarantees   no lost update, whatever happens to the lock. Registering a newer number shuts out every holder that
             registered before, and a balance is read only after registering. The lock only saves the work that
             the account would refuse.
Breaks when  one writer does not check the number. The lock's server may even grant a number twice or fall
             back (a counter lost in a failover or a restart). Two holders with one number cannot both register
             it, and a number below the account's cannot be registered at all. The strategy then reports the
             account's number to the lock (`seen`), and later grants continue above it. This is why the number is
             registered *before the read*: comparing it only at the write is not enough (`fenced-at-write`).
Costs        a lock and an unlock, and two transactions: UPDATE and SELECT before the work, UPDATE and INSERT
             after it.
Source       M. Kleppmann, "How to do distributed locking" (2016), with the registration added here.

`fenced-unchecked` is the same lock in front of a ledger that does not check the number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from django.db import transaction

from ledger.models import Account
from ledger.posting import Applied, Change, Posting, Refused, Snapshot, compute
from ledger.stores.rows import snapshot
from ledger.stores.sql import SqlStore
from ledger.strategies.base import Outrun
from ledger.strategies.locked import Locked
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS
from locks import LockFactory
from locks.fenced import FencedLock
from locks.hazards import Hazard


class Fenced(Locked):
    """Register the lock's number, read, compute, and write only if no newer number has been registered."""

    slug = "fenced"
    checks_number = True
    title = "Fenced lock, and a ledger that checks its number"
    source = 'M. Kleppmann, "How to do distributed locking" (F2)'
    guarantees = "no lost update, whatever happens to the lock"
    breaks_when = "one writer does not check the number"
    round_trips = "1 + 8 + 1"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS
    stores = ("postgres", "mariadb")
    factory: ClassVar[LockFactory] = FencedLock
    store: SqlStore

    def apply(self, posting: Posting) -> Applied:
        once = super().apply
        return self.insist(
            lambda number: replace(once(posting), retries=number), "were all overtaken by newer holders"
        )

    def inside(self, posting: Posting, taken: list[Any]) -> list[Change]:
        holders = dict(zip(self.order(posting), taken, strict=True))
        read = {number: self.register(number, lock) for number, lock in holders.items()}
        changes = compute(posting, read)
        self.think()
        with transaction.atomic(using=self.store.db):
            for change in sorted(changes, key=lambda c: c.before.number):  # one common order: no deadlock
                self.write_if_newest(change, holders[change.before.number])
            self.store.record(changes)
        return changes

    def register(self, number: str, lock: Any) -> Snapshot:
        """Shut out every older holder of this account, then read it. Raises Outrun if the account has seen this
        number or a newer one."""
        rows = Account.objects.using(self.store.db).filter(book_id=self.book.pk, number=number)
        with transaction.atomic(using=self.store.db):
            registered = rows.filter(fence__lt=lock.fencing_token).update(fence=lock.fencing_token)
            account = rows.first()
        if account is None:
            raise Refused(f"no account {number} in this book")
        if not registered:
            lock.seen(account.fence)
            raise Outrun
        return snapshot(account)

    def write_if_newest(self, change: Change, lock: Any) -> None:
        """UPDATE … WHERE fence = the registered number. Raises Outrun if another holder has registered since."""
        rows = Account.objects.using(self.store.db).filter(pk=change.before.pk, fence=lock.fencing_token)
        written = rows.update(balance=change.after, version=change.before.version + 1, head=change.entry)
        if not written:
            raise Outrun
