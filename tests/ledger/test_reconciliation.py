"""The books of real accounts on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from ledger.books import open_book, post
from ledger.models import Book, Entry
from ledger.posting import Line, Posting
from ledger.reconcile_stored import books_of, books_of_account
from ledger.stores import links, store_of
from ledger.strategies.base import Strategy

pytestmark = pytest.mark.usefixtures("committed_db")


def opened(strategy: str = "select-for-update", *numbers: str) -> Book:
    accounts = [(number, 100, None) for number in numbers or ("A1",)]
    return open_book(strategy, accounts, values={"think": [0, 0]})


def deposit(book: Book, key: str, amount: int, account: str = "A1") -> None:
    post(book, Posting(key, (Line(account, amount),)))


def elsewhere(work: Callable[[], None]) -> None:
    """Do `work` on another connection, and wait for it."""

    def run() -> None:
        work()
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Book]:
    """A book of no-lock in which the first of two deposits of 10 and 20 is overwritten by the second one."""

    def make(*numbers: str) -> Book:
        book = opened("no-lock", *numbers)
        monkeypatch.setattr(Strategy, "think", lambda self: monkeypatch.undo() or elsewhere(first))

        def first() -> None:
            deposit(book, "first", 10)

        deposit(book, "second", 20)
        return book

    return make


def test_a_book_that_is_right(overtaken):
    book = opened("select-for-update", "A1", "A2")
    deposit(book, "a", 10)
    deposit(book, "b", -4, "A2")
    post(book, Posting("t", (Line("A1", -50), Line("A2", 50))))
    books = books_of(book)
    assert books.balanced
    assert (books.opening, books.acknowledged, books.expected, books.final) == (200, 6, 206, 206)
    assert (books.lost_updates, books.torn, books.entries, books.forks) == (0, 0, 4, 0)


def test_a_real_lost_update_is_found_with_who_did_it(overtaken):
    book = overtaken()
    books = books_of_account(book, "A1")
    assert books.balanced
    assert (books.expected, books.final, books.lost_amount, books.lost_updates) == (130, 120, 10, 1)
    loss = books.first_loss
    assert loss is not None
    assert loss.entry is not None
    assert loss.overwritten_by is not None
    assert (loss.key, loss.overwritten_by.key) == ("first", "second")
    assert loss.entry.worker != loss.overwritten_by.worker, "another thread did it"
    assert f"over {loss.entry.worker}'s 110" in loss.sentence


def test_a_transfer_that_was_overwritten_on_one_side_is_torn(monkeypatch: pytest.MonkeyPatch):
    book = opened("no-lock", "A1", "A2")

    def transfer() -> None:
        post(book, Posting("t", (Line("A1", -50), Line("A2", 50))))

    monkeypatch.setattr(Strategy, "think", lambda self: monkeypatch.undo() or elsewhere(transfer))
    deposit(book, "over", 1, "A2")
    books = books_of(book)
    assert (books.lost_updates, books.lost_amount, books.torn, books.torn_amount) == (1, 50, 1, 50)
    assert books.worst_torn is not None
    assert "on the chain of A1 (-50) but not on that of A2 (+50): 50 destroyed" in books.worst_torn.sentence


@pytest.mark.parametrize(
    "read",
    [books_of, lambda book: books_of_account(book, "A1")],
    ids=["book", "account"],
)
def test_a_book_that_is_written_meanwhile_is_seen_at_one_moment(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[Book], Any]
):
    """A posting between the read of the account and that of its entries is no lost update."""
    book = opened()
    deposit(book, "before", 10)
    stream, arrived = links._stream, []

    def slowly(*arguments: Any) -> Iterator[Any]:
        elsewhere(lambda: deposit(book, "meanwhile", 5))
        arrived.append(True)
        return stream(*arguments)

    monkeypatch.setattr(links, "_stream", slowly)
    books = read(book)
    assert arrived
    assert (books.final, books.entries, books.lost_updates, books.balanced) == (110, 1, 0, True)
    monkeypatch.undo()
    assert read(book).final == 115


def test_inside_a_callers_transaction_the_caller_decides():
    from django.db import transaction

    book = opened()
    with transaction.atomic():
        deposit(book, "a", 10)
        assert books_of(book).final == 110


def test_accounts_that_do_not_exist():
    from ledger.posting import Refused

    with pytest.raises(Refused, match="no account nobody"):
        books_of_account(opened(), "nobody")


def test_the_three_ways_to_an_accounts_entries_agree():
    book = opened("no-lock", "A1", "empty", "A3")
    for number in range(3):
        deposit(book, str(number), number)
        deposit(book, f"{number} too", -number, "A3")
    store = store_of(book)
    in_one_pass = {account.number: [row.whole() for row in rows] for account, rows in store.everything()}
    assert {number: len(rows) for number, rows in in_one_pass.items()} == {"A1": 3, "empty": 0, "A3": 3}
    for account, pk in store.accounts():
        assert sorted(store.entries(pk)) == sorted(in_one_pass[account.number])
        assert sorted(row.whole() for row in store.links(pk)) == sorted(in_one_pass[account.number])


def test_entries_of_an_account_that_is_not_there_do_not_hide_those_of_others():
    """Entries have no foreign key (decision 11): plain SQL may leave such a one, and its account may sort first."""
    book = opened()
    deposit(book, "here", 10)
    Entry.objects.create(
        book=book, account_id=0, key="nobody's", amount=5, balance_before=0, balance_after=5,
        worker="plain SQL", read_at=timezone.now(), written_at=timezone.now(),
    )  # fmt: skip
    books = books_of(book)
    assert (books.final, books.entries, books.right) == (110, 1, True)


def test_a_reader_that_gives_up_leaves_the_connection_usable():
    book = opened()
    for number in range(3):
        deposit(book, str(number), 1)
    store = store_of(book)
    ((_, pk),) = list(store.accounts())
    rows = store.links(pk)
    assert next(rows).amount == 1
    del rows
    assert books_of(book).final == 103


def test_the_balances_of_a_book_may_add_up_to_more_than_a_bigint() -> None:
    most = 2**63 - 1
    book = open_book("select-for-update", [("A1", most, None), ("A2", most, None)], values={"think": [0, 0]})
    assert books_of(book).final == 2 * most
    book.refresh_from_db()
    assert (book.reconciliation.final, book.reconciliation.lost_amount) == (2 * most, 0)
