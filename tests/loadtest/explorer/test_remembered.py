"""A schedule is judged by books that were read once: they say what the store would say now."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.books import open_book
from ledger.models import Account, Book
from ledger.posting import Line, Posting
from ledger.reconcile import ClientOperation, ClientOutcome
from ledger.reconcile_stored import books_of
from ledger.strategies import find
from loadtest.explorer.remembered import Remembered

pytestmark = pytest.mark.usefixtures("committed_db", "redis_client")


def posted(strategy: str, store: str) -> Book:
    book = open_book(
        strategy, [("A", 100, None), ("B", 0, None)], store=store, name="remembered", trusted=True
    )
    for key, account, amount in (("one", "A", 10), ("two", "A", 20), ("three", "B", 5)):
        find(strategy)(book).apply(Posting(key, (Line(account, amount),)))
    return book


def seen(**outcomes: str) -> dict[str, list[ClientOperation]]:
    asked = {"one": ("A", 10), "two": ("A", 20), "three": ("B", 5), "four": ("B", 7)}
    found: dict[str, list[ClientOperation]] = {}
    for key, outcome in outcomes.items():
        account, amount = asked[key]
        found.setdefault(account, []).append(
            ClientOperation(key, amount, ClientOutcome(outcome), 1.0, 2.0, "W")
        )
    return found


def told(books: Any) -> Any:
    return (
        books.lost_amount,
        books.created_amount,
        books.expected,
        books.final,
        books.unreported,
        books.problems,
    )


@pytest.mark.parametrize(
    ("strategy", "store"),
    [("select-for-update", "postgres"), ("segmented-balance", "postgres"), ("redis-atomic", "redis")],
)
@pytest.mark.parametrize(
    "operations",
    [
        seen(one="ok", two="ok", three="ok"),
        seen(one="ok", two="fail", three="info"),  # created: a refused one is on the chain
        seen(one="ok", two="ok", three="ok", four="ok"),  # lost: an acknowledged one is not
        seen(one="ok", three="ok"),  # unreported money
    ],
)
def test_other_answers_are_held_against_the_same_books(
    strategy: str, store: str, operations: dict[str, list[ClientOperation]]
) -> None:
    book = posted(strategy, store)
    remembered = Remembered.of(book)
    assert told(remembered.books(operations)) == told(books_of(book, operations))


def test_what_is_remembered_is_what_was_there_then() -> None:
    book = posted("select-for-update", "postgres")
    remembered, operations = Remembered.of(book), seen(one="ok", two="ok", three="ok")
    Account.objects.filter(book=book, number="A").update(balance=100, head=None)
    assert books_of(book, operations).lost_amount == 30
    assert remembered.books(operations).lost_amount == 0
