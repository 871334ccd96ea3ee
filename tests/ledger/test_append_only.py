"""Entries cannot be changed or taken away, not even by SQL: the trigger says so."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from ledger.books import open_book, post
from ledger.models import Book, Entry
from ledger.posting import Line, Posting

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
