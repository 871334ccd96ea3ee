"""The SQL store: an account is a row, an entry is a row, and one transaction writes both.

The account is written before the entry. Otherwise the entry's foreign key would share-lock the account's row first,
and on InnoDB two writers that both hold that lock deadlock when they update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from django.conf import settings
from django.db import connections, transaction

from ledger.models import Account, Book, Entry
from ledger.posting import Change, NotConfigured, Posting, Refused, Snapshot, Stored
from ledger.reconcile import AccountRow, ChainRow, ClientOperation, EntryRow, Leg
from ledger.reconcile.rows import SEGMENT
from ledger.stores import links
from ledger.stores.base import Store
from ledger.stores.rows import account_row, entry, key_taken, snapshot
from ledger.stores.segments import spread, total

ALIASES = {"postgres": "default", "mariadb": "mariadb"}
KNOWN = "SELECT 1 FROM ledger_entry WHERE book_id = %s AND key = %s LIMIT 1"
#: the columns of a Stored
FOUND = ("id", "account__number", "amount", "balance_before", "balance_after")


class SqlStore(Store):
    """PostgreSQL or MariaDB through Django's ORM."""

    slug = "sql"

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        self.db = ALIASES[book.store]
        if self.db not in settings.DATABASES:
            raise NotConfigured(book.store)

    def open(self, accounts: Iterable[Snapshot]) -> None:
        Account.objects.using(self.db).bulk_create(
            (
                Account(
                    book_id=self.book.pk, number=a.number, opening=a.balance, balance=a.balance, floor=a.floor
                )
                for a in accounts
            ),
            batch_size=1000,
        )

    def read(self, posting: Posting) -> dict[str, Snapshot]:
        rows = Account.objects.using(self.db).filter(book_id=self.book.pk, number__in=posting.accounts)
        return self.complete(posting, {row.number: snapshot(row) for row in rows})

    def complete(self, posting: Posting, read: dict[str, Snapshot]) -> dict[str, Snapshot]:
        """Return `read` with every account of the posting, or raise Refused. A split account becomes the sum of its
        rows."""
        for number in sorted(set(posting.accounts) - read.keys()):
            rows = Account.objects.using(self.db).filter(book_id=self.book.pk)
            parts = [snapshot(row) for row in rows.filter(number__startswith=number + SEGMENT)]
            if not parts:
                raise Refused(f"no account {number} in this book")
            read[number] = total(number, parts)
        return read

    def spread(
        self, operations: Mapping[str, Sequence[ClientOperation]]
    ) -> Mapping[str, Sequence[ClientOperation]]:
        rows = Account.objects.using(self.db).filter(book_id=self.book.pk, number__contains=SEGMENT)
        if not rows.exists():
            return operations
        entries = Entry.objects.using(self.db).filter(book_id=self.book.pk).order_by("written_at")
        return spread(operations, entries.values_list("key", "account__number", "amount"))

    def write(self, changes: Sequence[Change]) -> None:
        with transaction.atomic(using=self.db):
            self.put(changes)

    def open_blocks(self) -> int:
        return len(connections[self.db].atomic_blocks)

    def put(self, changes: Sequence[Change], first: int = 0) -> None:
        """`write`, in the caller's transaction and without a savepoint. Raises KeyTaken. Raises Refused for an account
        that was deleted after it was read."""
        if self.book.settings.get("ordered", True):  # one common order: no deadlock
            changes = sorted(changes, key=lambda change: change.before.number)
        for change in changes:
            row = Account.objects.using(self.db).filter(pk=change.before.pk)
            if not row.update(balance=change.after, version=change.before.version + 1, head=change.entry):
                raise Refused(f"no account {change.before.number} in this book")
        self.record(changes, first)

    def record(self, changes: Sequence[Change], first: int = 0) -> None:
        """Insert the entries. The caller's transaction has written the balances. Raises KeyTaken. `first`: the position
        of the first entry in its posting."""
        with key_taken(changes[0].key):
            for place, change in enumerate(changes, first):
                entry(change, self.book, place).save(using=self.db, force_insert=True)

    def find(self, key: str) -> tuple[str, tuple[Stored, ...]] | None:
        if self._is_new(key):
            return None
        entries = Entry.objects.using(self.db).filter(book_id=self.book.pk, key=key)
        rows = list(entries.values_list("fingerprint", *FOUND))
        return (rows[0][0], tuple(Stored(*row[1:]) for row in rows)) if rows else None

    def _is_new(self, key: str) -> bool:
        """Say whether the key is new. Every posting begins with this question, and the answer is nearly always yes.

        The ORM takes eight times as long. The statement is not prepared: a plan for a small table would scan all of a
        table that grows fast.
        """
        connection = connections[self.db]
        if connection.vendor != "postgresql":
            return False
        with connection.cursor() as cursor:
            cursor.execute(KNOWN, [self.book.pk, key])
            return cursor.fetchone() is None

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """Use one snapshot. Inside a caller's transaction, the caller's isolation level decides."""
        connection = connections[self.db]
        if connection.in_atomic_block:
            yield
            return
        with transaction.atomic(using=self.db):
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def accounts(self) -> Iterator[tuple[AccountRow, int | str]]:
        rows = Account.objects.using(self.db).filter(book_id=self.book.pk).order_by("number")
        for account in rows.iterator(chunk_size=2000):
            yield account_row(account), account.pk

    def account(self, pk: int | str) -> AccountRow:
        if isinstance(pk, str):
            rows = f"{pk}{SEGMENT}0, {pk}{SEGMENT}1, …"
            raise Refused(
                f"account {pk} is kept in several rows ({rows}): ask for one of them, or for the book"
            )
        return account_row(Account.objects.using(self.db).get(pk=pk))

    def legs(self, keys: Collection[str]) -> Iterable[Leg]:
        for some in batched(keys, 1000):
            rows = Entry.objects.using(self.db).filter(book_id=self.book.pk, key__in=some)
            yield from (Leg(*row) for row in rows.values_list("key", "account__number", "amount"))

    def entries(self, pk: int | str) -> Iterator[EntryRow]:
        rows = Entry.objects.using(self.db).filter(account_id=pk).order_by().values_list(*EntryRow._fields)
        return (EntryRow(*row) for row in rows.iterator(chunk_size=5000))

    def links(self, pk: int | str) -> Iterator[ChainRow]:
        connection = connections[self.db]
        return (
            links.of_account(connection, int(pk)) if connection.vendor == "postgresql" else self.entries(pk)
        )

    def everything(self) -> Iterator[tuple[AccountRow, Iterable[ChainRow]]]:
        connection = connections[self.db]
        if connection.vendor != "postgresql":
            return super().everything()
        return links.of_accounts(connection, list(self.accounts()))


def batched(values: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield `values` in lists of at most `size` (itertools.batched needs Python 3.12)."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
