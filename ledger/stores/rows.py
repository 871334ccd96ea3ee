"""Conversions between the rows of the SQL store and the data of a posting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError
from django.utils import timezone

from ledger.models import Account, Book, Entry
from ledger.posting import Change, Snapshot, worker
from ledger.reconcile import AccountRow
from ledger.stores.base import KeyTaken


def snapshot(account: Account) -> Snapshot:
    """Return what was just read from `account`."""
    return Snapshot(
        account.pk,
        account.number,
        account.balance,
        account.version,
        account.head,
        account.floor,
        timezone.now(),
    )


def entry(change: Change, book: Book, place: int) -> Entry:
    """Return the unsaved entry that explains `change`. `place`: its position in the posting."""
    return Entry(
        id=change.entry,
        book_id=book.pk,
        account_id=change.before.pk,
        key=change.key,
        fingerprint=change.fingerprint,
        place=place,
        amount=change.amount,
        balance_before=change.before.balance,
        balance_after=change.after,
        parent=change.before.head,
        worker=worker(),
        read_at=change.before.read_at,
        written_at=timezone.now(),
    )


@contextmanager
def key_taken(key: str) -> Iterator[None]:
    """Raise KeyTaken for a violation of the entries' unique constraint."""
    try:
        yield
    except IntegrityError as error:
        if "a_key_once_in_a_book" in str(error):
            raise KeyTaken(key) from error
        raise


def account_row(account: Account) -> AccountRow:
    """Return the fields of `account` that reconcile needs."""
    return AccountRow(
        account.number, account.opening, account.balance, account.version, account.head, account.floor
    )
