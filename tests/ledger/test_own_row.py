"""Where a thread goes in a split account: it stays where it is alone, and a newcomer does not drive it away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from threading import Thread
from uuid import uuid4

import pytest
from django.db import connections
from django.db.models import F

from ledger.books import open_book, post
from ledger.models import Account, Book
from ledger.posting import Line, Posting
from ledger.strategies.own_row import MOST, PATIENCE, OwnRows
from ledger.strategies.segmented_balance import SEGMENTS, home

BOOK = uuid4()


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    OwnRows.forget()
    yield
    OwnRows.forget()


def left(*versions: int) -> int | None:
    """Where this thread goes next, after it left row 3 at these versions."""
    for version in versions:
        OwnRows.wrote(BOOK, "A", 3, version)
    return OwnRows.of(BOOK, "A")


def test_a_thread_without_a_row_has_none() -> None:
    assert OwnRows.of(BOOK, "A") is None


def test_a_thread_without_company_stays() -> None:
    assert left(*range(7, 50)) == 3


def test_a_newcomer_that_meets_another_thread_leaves_at_once() -> None:
    assert left(7, 9) is None


def test_a_settled_thread_meets_several_before_it_leaves() -> None:
    last = 7 + PATIENCE
    assert left(*range(7, last + 1)) == 3
    met = [last + 2 * n for n in range(1, PATIENCE + 2)]
    assert left(*met[:-1]) == 3
    assert left(met[-1]) is None


def test_trust_comes_back_and_is_not_without_end() -> None:
    alone = range(7, 1007)
    assert left(*alone, 1008, 1009) == 3
    assert left(*(1009 + 2 * n for n in range(1, PATIENCE + 1))) == 3
    assert left(1009 + 2 * PATIENCE + 2) is None


def test_another_account_and_another_thread_are_not_this_one() -> None:
    left(7)
    assert OwnRows.of(BOOK, "B") is None
    assert OwnRows.of(uuid4(), "A") is None
    seen: list[int | None] = []
    other = Thread(target=lambda: seen.append(OwnRows.of(BOOK, "A")))
    other.start()
    other.join()
    assert seen == [None]


def test_what_is_kept_in_mind_has_a_bound() -> None:
    for number in range(MOST + 5):
        OwnRows.wrote(BOOK, str(number), 1, 1)
    assert len(OwnRows._stays) == 5


# -- by the strategy ------------------------------------------------------------------------------------------------


def postings(row: int | None = None, amount: int = 1) -> Iterator[Posting]:
    """With fresh keys; of those only the ones that lead to `row`."""
    made = (Posting(uuid4().hex, (Line("A", amount),)) for _ in count())
    return (each for each in made if row is None or home(each) == row)


def elsewhere(action: Callable[[], None]) -> None:
    def work() -> None:
        try:
            action()
        finally:
            connections.close_all()

    thread = Thread(target=work)
    thread.start()
    thread.join()


def written(book: Book) -> dict[int, int]:
    """row → how many postings it has had"""
    rows = Account.objects.filter(book=book, number__startswith="A/", version__gt=0)
    return {int(number[2:]): version for number, version in rows.values_list("number", "version")}


@pytest.mark.usefixtures("committed_db")
def test_a_thread_that_is_alone_has_one_row() -> None:
    book = open_book("segmented-balance", [("A", 0, None)])
    post(book, next(postings(5)))
    for row in range(SEGMENTS):
        post(book, next(postings(row)))
    assert written(book) == {5: 1 + SEGMENTS}


@pytest.mark.usefixtures("committed_db")
def test_two_threads_that_meet_are_soon_apart() -> None:
    """Both come to row 5. The second one has met the first when it comes again, and goes where its key leads."""
    book = open_book("segmented-balance", [("A", 0, None)])
    for _ in range(3):
        post(book, next(postings(5)))

    def newcomer() -> None:
        post(book, next(postings(5)))
        # as the first one's next posting does
        Account.objects.filter(book=book, number="A/5").update(version=F("version") + 1)
        post(book, next(postings(5)))
        for _ in range(2):
            post(book, next(postings(2)))

    elsewhere(newcomer)
    assert written(book) == {5: 6, 2: 2}
    post(book, next(postings(0)))
    assert written(book) == {5: 7, 2: 2}, "the first one has stayed"


@pytest.mark.usefixtures("committed_db")
def test_a_thread_whose_row_holds_too_little_goes_where_its_key_leads() -> None:
    book = open_book("segmented-balance", [("A", 80, 0)])  # ten in each row
    post(book, next(postings(5, -8)))
    post(book, next(postings(5, -8)))  # 2 are left: it takes from several
    post(book, next(postings(7, -1)))
    assert 7 in written(book)
