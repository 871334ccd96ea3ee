"""Two transfers in opposite directions: with one order for everyone they queue up, without one they deadlock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from ledger.books import open_book, post
from ledger.models import Account, Book
from ledger.posting import Applied, Busy, Line, Posting
from ledger.strategies.select_for_update import SelectForUpdate

pytestmark = pytest.mark.usefixtures("committed_db")

THERE = Posting("there", (Line("A1", -10), Line("A2", 10)))
BACK = Posting("back", (Line("A2", -20), Line("A1", 20)))


def opposite(book: Book) -> list[Applied | Busy]:
    """Post both at the same time; return each caller's answer."""

    def told(posting: Posting) -> Applied | Busy:
        try:
            return post(book, posting)
        except Busy as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as callers:
        return list(callers.map(told, (THERE, BACK)))


def book(**values: object) -> Book:
    accounts = [("A1", 100, None), ("A2", 100, None)]
    return open_book("select-for-update", accounts, values={"think": [0, 0], **values})


def balances(book: Book) -> list[int]:
    return list(Account.objects.filter(book=book).order_by("number").values_list("balance", flat=True))


def test_with_one_order_both_are_applied() -> None:
    opened = book()
    assert all(isinstance(each, Applied) for each in opposite(opened))
    assert balances(opened) == [110, 90]


def test_without_an_order_one_is_the_victim(monkeypatch: pytest.MonkeyPatch) -> None:
    met = Barrier(2)

    def lock(self: SelectForUpdate, posting: Posting) -> Iterator[Account]:
        """As the strategy's own, but each waits with its first row locked until the other one has one too."""
        rows = Account.objects.select_for_update().filter(book_id=self.book.pk)
        for place, number in enumerate(self.order(posting)):
            if place == 1:
                met.wait(30)
            yield rows.get(number=number)

    monkeypatch.setattr(SelectForUpdate, "lock", lock)
    opened = book(ordered=False)
    told = opposite(opened)
    victims = [each for each in told if isinstance(each, Busy)]
    assert len(victims) == 1
    assert "deadlock" in str(victims[0])
    assert sum(balances(opened)) == 200  # the victim is certainly not applied
    assert balances(opened) == ([90, 110] if isinstance(told[0], Applied) else [120, 80])


def test_the_strategy_locks_as_the_posting_has_its_accounts() -> None:
    assert SelectForUpdate(book()).order(BACK) == ["A1", "A2"]
    assert SelectForUpdate(book(ordered=False)).order(BACK) == ["A2", "A1"]
    with pytest.raises(ValueError, match="ordered: true or false"):
        book(ordered="yes")
