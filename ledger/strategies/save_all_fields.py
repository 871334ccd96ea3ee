"""save-all-fields: `account.balance += amount; account.save()`. Django writes every column of a stale object.

    A (deposit):  Account.objects.get() → balance 100, name "Ann"
    B (rename):                              Account.objects.get() → balance 100, name "Ann"
    A: balance = 110; save() → UPDATE … SET name = 'Ann', balance = 110, …
    B:                                       name = "Anna"; save() → UPDATE … SET name = 'Anna', balance = 100, …
                                             A's 10 are gone, by one that never touched the money

Guarantees   nothing. `save()` writes all columns as they were when the object was read.
Breaks when  two callers want one account at the same time, even if they change different fields of it. Here
             `save(update_fields=["name"])` would have saved the money. It does not help two deposits.
Costs        one SELECT, one UPDATE of every column, one INSERT.
Source       Django, "Model instance reference: Specifying which fields to save".
"""

from __future__ import annotations

from typing import ClassVar

from django.db import transaction

from ledger.models import Account
from ledger.posting import Applied, Posting, applied, compute
from ledger.stores.rows import snapshot
from ledger.strategies.sql import SqlStrategy
from locks.hazards import Hazard


class SaveAllFields(SqlStrategy):
    """Load the object, change a field, save the object. A posting of 0 renames the account to its description."""

    slug = "save-all-fields"
    protects = False
    title = "account.save() of a stale object"
    source = "Django manual, Model.save() without update_fields (F4)"
    guarantees = "nothing, not even between callers that change different fields"
    breaks_when = "two callers save one account at the same time, whatever they change"
    round_trips = "1 read, 1 transaction of 2 writes"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        rows = Account.objects.using(self.db).filter(book_id=self.book.pk, number__in=posting.accounts)
        stale = {row.number: row for row in rows}
        read = self.store.complete(posting, {number: snapshot(row) for number, row in stale.items()})
        changes = compute(posting, read)
        self.think()
        with transaction.atomic(using=self.db):
            for change in changes:
                account = stale[change.before.number]
                account.balance, account.version, account.head = (
                    change.after,
                    account.version + 1,
                    change.entry,
                )
                if change.amount == 0 and posting.description:
                    account.name = posting.description
                account.save(using=self.db)  # every column, including those that this caller never looked at
            self.store.record(changes)
        return applied(changes)
