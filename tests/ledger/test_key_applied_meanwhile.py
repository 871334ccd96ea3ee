"""One request, sent twice at once: the second must not get "no" for what the first has done."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from psycopg.errors import DeadlockDetected

from ledger.books import open_book, post
from ledger.posting import Busy, Line, Posting
from ledger.stores import store_of
from ledger.strategies import find

pytestmark = pytest.mark.usefixtures("committed_db")
ALL_OF_IT = Posting("k", (Line("A1", -100),))
STRATEGIES = [
    "select-for-update",
    "select-for-update-function",
    "atomic-update",
    "optimistic-version",
    "serializable",
    "segmented-balance",
    "single-writer",
]


def book_of(strategy: str):
    return open_book(strategy, [("A1", 100, 0)], values={"think": [0, 0]})


@pytest.fixture
def twin(monkeypatch):
    """`twin(book)`: the same request is applied once more, after the second one looked for its key."""

    def begin(book, then: type[Exception] | None = None) -> None:
        strategy = find(book.strategy)
        apply = strategy.apply

        def after_the_twin(self, posting):
            apply(self, posting)
            if then is not None:
                raise then("it did not get on")
            return apply(self, posting)

        monkeypatch.setattr(strategy, "apply", after_the_twin)

    return begin


def balance(book) -> int:
    return store_of(book).read(ALL_OF_IT)["A1"].balance


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_retry_refused_because_its_twin_took_the_money_gets_the_first_answer(strategy, twin):
    book = book_of(strategy)
    twin(book)
    assert post(book, ALL_OF_IT).replayed
    assert balance(book) == 0


def test_a_retry_that_gives_up_waiting_for_its_twin_gets_the_twins_answer(twin):
    book = book_of("select-for-update")
    twin(book, then=Busy)
    assert post(book, ALL_OF_IT).replayed


def test_the_victim_of_a_deadlock_with_its_twin_gets_the_twins_answer(twin):
    class Deadlock(OperationalError):
        def __init__(self, told: str) -> None:
            super().__init__(told)
            self.__cause__ = DeadlockDetected(told)

    book = book_of("select-for-update")
    twin(book, then=Deadlock)
    assert post(book, ALL_OF_IT).replayed
