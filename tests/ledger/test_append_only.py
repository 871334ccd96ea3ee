"""Entries cannot be changed or taken away, not even by SQL: the trigger says so."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from ledger.books import open_book, post
from ledger.models import Account, Book, Entry
from ledger.posting import Line, Posting, Refused, compute
from ledger.stores import store_of

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture
def book() -> Book:
    book = open_book("select-for-update", [("A1", 100, None)])
    post(book, Posting("k", (Line("A1", 10),)))
    return book


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE ledger_entry SET amount = 0 WHERE book_id = %s",
        "DELETE FROM ledger_entry WHERE book_id = %s",
        "TRUNCATE ledger_entry CASCADE",
    ],
)
def test_sql_is_refused(book: Book, sql: str) -> None:
    with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(sql, [book.pk] if "%s" in sql else [])
    assert Entry.objects.get(book=book).amount == 10


def test_the_orm_is_refused(book: Book) -> None:
    entry = Entry.objects.get(book=book)
    entry.amount = 0
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        entry.save()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Entry.objects.filter(book=book).delete()
    assert Entry.objects.get(book=book).amount == 10


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM ledger_account WHERE book_id = %s",
        "UPDATE ledger_account SET id = id + 1000000 WHERE book_id = %s",
        "TRUNCATE ledger_account",
    ],
)
def test_an_account_with_entries_stays(book: Book, sql: str) -> None:
    """No foreign key says so (docs/decisions/0011): a trigger does."""
    with pytest.raises(IntegrityError, match="entries"), connection.cursor() as cursor:
        cursor.execute(sql, [book.pk] if "%s" in sql else [])
    assert Account.objects.get(book=book).balance == 110


def test_an_account_without_entries_may_go() -> None:
    other = open_book("select-for-update", [("A1", 0, None)])
    other.delete()
    assert not Account.objects.filter(book=other.pk).exists()


def test_a_writer_whose_account_went_writes_nothing() -> None:
    """It had read the account, which was then deleted: no entry without an account."""
    other = open_book("select-for-update", [("A1", 0, None)])
    store = store_of(other)
    posting = Posting("late", (Line("A1", 10),))
    changes = compute(posting, store.read(posting))
    Account.objects.filter(book=other).delete()
    with pytest.raises(Refused, match="no account"):
        store.write(changes)
    assert not Entry.objects.filter(book=other.pk).exists()
