"""A release that fails: has the posting been applied? That depends on who commits, the store or the lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from django.db import transaction

from ledger.books import open_book, post
from ledger.models import Book
from ledger.posting import Line, Posting
from ledger.stores import store_of

pytestmark = pytest.mark.usefixtures("committed_db")


class ConnectionLostError(Exception):
    pass


@contextmanager
def after_the_commit(name: str) -> Iterator[None]:
    yield
    raise ConnectionLostError("no reply to the release")


@contextmanager
def before_the_commit(name: str, sql: str) -> Iterator[None]:
    """As a lock that is a row: INSERT, the section, DELETE."""
    with transaction.atomic(using=sql):
        yield
        raise ConnectionLostError("no reply to the DELETE")


DEPOSIT = Posting("k", (Line("A1", 10),))
TRANSFER = Posting("k", (Line("A1", -10), Line("A2", 10)))


def opened(lock: str) -> Book:
    return open_book(
        f"{__name__}:{lock}", [("A1", 100, 0), ("A2", 100, 0)], values={"think": [0, 0]}, trusted=True
    )


def balances(book: Book) -> list[int]:
    return [row.balance for row in store_of(book).whole_accounts()]


def test_what_the_store_has_committed_is_applied_with_a_warning() -> None:
    book = opened("after_the_commit")
    assert "ConnectionLostError" in post(book, DEPOSIT).warning
    assert balances(book) == [110, 100]


@pytest.mark.parametrize("posting", [DEPOSIT, TRANSFER], ids=["one lock", "two locks"])
@pytest.mark.parametrize("around", [False, True], ids=["alone", "in a caller's transaction"])
def test_what_the_lock_has_rolled_back_is_not_applied(posting: Posting, around: bool) -> None:
    """It was a warning beside an answer that said "applied"."""
    book = opened("before_the_commit")
    with transaction.atomic() if around else nullcontext(), pytest.raises(ConnectionLostError):
        post(book, posting)
    assert balances(book) == [100, 100]
