"""The book of a request, read without the ORM, is what the ORM reads."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext

from ledger.books import book_of, open_book, post
from ledger.models import Book
from ledger.posting import Line, Posting

pytestmark = pytest.mark.usefixtures("committed_db")


def test_it_is_the_same_book() -> None:
    made = open_book("token", [("A", 1, None)], name="name: ü", values={"lease": 2.5, "poll": 0.1})
    read, wanted = book_of(made.pk), Book.objects.get(pk=made.pk)
    assert (read, model_to_dict(read), read.created) == (wanted, model_to_dict(wanted), wanted.created)
    assert (read.pk, read.settings) == (made.pk, {"lease": 2.5, "poll": 0.1})
    assert not read._state.adding
    assert {field.attname for field in Book._meta.concrete_fields} <= set(vars(read)), (
        "one would be fetched later"
    )


def test_an_unknown_one_is_reported() -> None:
    with pytest.raises(Book.DoesNotExist):
        book_of(uuid4())


def test_a_new_posting_asks_one_thing_beside_the_prepared_statement() -> None:
    """Whether its key is known. A prepared statement is not among Django's captured ones."""
    book = open_book("atomic-update", [("A", 0, None)], values={"think": [0, 0]})
    with CaptureQueriesContext(connection) as asked:
        assert not post(book, Posting("k", (Line("A", 5),))).replayed
    assert ["AND key = 'k'" in each["sql"] for each in asked] == [True]
    assert post(book, Posting("k", (Line("A", 5),))).replayed
