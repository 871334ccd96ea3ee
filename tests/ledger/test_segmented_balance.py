"""An account in 8 rows: the sum, the floor over all of them, and which posting waits for which."""

from __future__ import annotations

from itertools import count

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from ledger.books import open_book, post
from ledger.models import Account, Book
from ledger.posting import Line, Posting, Refused
from ledger.reconcile_stored import books_of, books_of_account
from ledger.stores import KeyTaken, store_of
from ledger.stores.segments import row_of
from ledger.strategies.segmented_balance import home
from tests.ledger.race import Race, State
from tests.ledger.test_admin import user

pytestmark = pytest.mark.usefixtures("committed_db")
BOTH = pytest.mark.parametrize("slug", ["segmented-balance", "skip-locked"])


def balance(book: object) -> int:
    return store_of(book).read(Posting("", (Line("A", 0),)))["A"].balance


@BOTH
@pytest.mark.parametrize(("opening", "floor"), [(100, 0), (7, None), (50, -100), (-20, -20), (0, 0)])
def test_the_rows_add_up_and_the_floor_is_where_it_was(slug: str, opening: int, floor: int | None) -> None:
    book = open_book(slug, [("A", opening, floor)])
    whole = store_of(book).read(Posting("", (Line("A", 0),)))["A"]
    assert (whole.balance, whole.floor) == (opening, floor)
    if floor is not None and opening > floor:
        post(book, Posting("all", (Line("A", floor - opening),)))
        assert balance(book) == floor
        with pytest.raises(Refused):
            post(book, Posting("more", (Line("A", -1),)))
    assert books_of(book).balanced


@BOTH
def test_no_account_opens_below_its_floor(slug: str) -> None:
    """What is paid into one of its rows could be taken out again, though the sum is below the floor."""
    with pytest.raises(ValueError, match="A: opens at -30, below its floor of 0"):
        open_book(slug, [("A", -30, 0)])


@BOTH
@pytest.mark.parametrize("amount", [5, -5])
def test_an_unknown_account_is_called_by_its_own_name(slug: str, amount: int) -> None:
    book = open_book(slug, [("A", 100, 0)])
    for lines in [(Line("Z", amount),), (Line("A", -amount), Line("Z", amount))]:
        with pytest.raises(Refused, match="no account Z in this book"):
            post(book, Posting("k", lines))
    assert balance(book) == 100


@BOTH
def test_a_large_withdrawal_takes_from_several_rows_and_is_one_operation(slug: str) -> None:
    with Race(slug, floor=0) as race:
        race.worker("A", -90).finishes()
        race.worker("B", +5).finishes()
        assert race.balance() == 15
        books = race.books()
        assert (books.lost_updates, books.balanced, books.unreported) == (0, True, 0)
        assert books.entries > 2


@BOTH
def test_a_key_is_once_over_all_rows(slug: str) -> None:
    book = open_book(slug, [("A", 100, 0)])
    for _ in range(5):
        post(book, Posting("k", (Line("A", -60),)))
    assert balance(book) == 40


def test_a_withdrawal_waits_for_who_holds_one_of_the_rows() -> None:
    with Race("segmented-balance", floor=0) as race:
        a, b = race.worker("A", -60), race.worker("B", -60)
        a.runs_to("sql INSERT")  # it holds all rows
        assert b.tries("the end") is State.WAITS
        a.finishes()
        b.fails(Refused)
        assert (race.balance(), race.kept()) == (40, True)


def test_the_books_of_such_an_account_are_those_of_its_rows() -> None:
    book = open_book("segmented-balance", [("A", 100, 0)])
    post(book, Posting("k", (Line("A", 8),)))
    with pytest.raises(Refused, match="several rows"):
        books_of_account(book, "A")
    assert sum(books_of_account(book, f"A/{n}").final for n in range(8)) == 108


def test_its_clients_see_the_account_and_not_its_rows() -> None:
    book = open_book("segmented-balance", [("A", 100, 5), ("B", 3, None)])
    post(book, Posting("k1", (Line("A", 10),)))
    assert [row[:4] for row in store_of(book).whole_accounts()] == [("A", 100, 110, 1), ("B", 3, 3, 0)]
    assert [row.floor for row in store_of(book).whole_accounts()] == [5, None]
    answer = Client(headers={"host": "localhost"}).get(f"/api/books/{book.pk}")
    assert answer.json()["accounts"][0] == {"account": "A", "opening": 100, "balance": 110, "version": 1}


def test_a_loss_of_one_of_its_rows_has_a_page() -> None:
    book = open_book("segmented-balance", [("A", 0, None)])
    address = reverse("admin:ledger_book_losses", args=[book.pk, "A/3"])
    assert user("ledger.view_book").get(address).status_code == 200


def test_skip_locked_takes_another_row_when_one_is_locked() -> None:
    with Race("skip-locked", floor=0) as race:
        store = store_of(race.book)
        with transaction.atomic():
            list(Account.objects.select_for_update().filter(book=race.book, number="A/0"))
            race.worker("A", +1).finishes()
        assert [row.number for row, _ in store.accounts() if row.version] == ["A/1"]


@BOTH
@pytest.mark.parametrize("amount", [1, -90])
def test_a_request_sent_twice_at_once_is_applied_once(slug: str, amount: int) -> None:
    with Race(slug, floor=0) as race:
        twice = Posting("twice", (Line("A", amount),))
        a, b = race.poster("A", twice), race.poster("B", twice)
        race.worker("C", +90).finishes()
        a.runs_to(r"sql (\s*WITH|SELECT .*FOR UPDATE|SELECT pg_adv|INSERT)")
        for worker in (b, a, b):
            worker.tries("the end")
        assert [type(worker.error) for worker in (a, b) if worker.answer is None] == [KeyTaken]
        assert race.balance() == 190 + amount


LAST_TWO = ("A/0", "A/3")  # the rows with a piece each, when all others are empty


def for_row(book: Book, row: str, to: tuple[Line, ...]) -> Posting:
    """A posting whose key leads to this row of the account A."""
    postings = (Posting(f"key-{number}", to) for number in count())
    return next(each for each in postings if row_of("A", home(each)) == row)


@pytest.mark.parametrize(("slug", "lines"), [("skip-locked", 1), ("segmented-balance", 2)])
def test_threads_that_waited_for_different_rows_in_vain_do_not_wait_for_each_other(
    slug: str, lines: int
) -> None:
    """The last pieces are sold while they wait: each then looks at all rows, in one order, and holds none yet."""
    with Race(slug, floor=0) as race:
        rows = Account.objects.filter(book=race.book, number__startswith="A/")
        rows.update(opening=0, balance=0)
        rows.filter(number__in=LAST_TWO).update(opening=1, balance=1)
        to = (Line("A", -1), Line("B", 1))[:lines]
        a, b = (race.poster(row, for_row(race.book, row, to)) for row in LAST_TWO)
        with transaction.atomic():
            rows.update(balance=0)
            for worker in (a, b):
                assert worker.tries("sql SELECT .*FOR UPDATE") is State.WAITS
        for worker in (a, b):
            worker.gets_there()
        for worker in (a, b, a):
            worker.tries("the end")
        assert [type(worker.error) for worker in (a, b)] == [Refused, Refused]
