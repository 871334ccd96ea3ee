"""Balances in Redis: once for each key, exact to the last of 64 bits, and gone when the server forgets."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest
from redis import Redis

from ledger.books import KeyReused, open_book, post
from ledger.models import Book
from ledger.posting import BIGINT, Line, Posting, Refused
from ledger.reconcile_stored import books_of
from ledger.stores import store_of
from loadtest.servers import Valkey
from tests.ledger.race import Race
from tests.ledger.race.books import assert_lost

pytestmark = pytest.mark.usefixtures("committed_db")
STRATEGIES = ["no-lock", "redis-atomic", "redis-watch"]


def book_of(strategy: str, *accounts: tuple[str, int, int | None]) -> Book:
    return open_book(strategy, accounts, store="redis")


def balance(book: Book, account: str = "A") -> int:
    return store_of(book).read(Posting("", (Line(account, 0),)))[account].balance


@pytest.mark.parametrize("strategy", STRATEGIES)
class TestPostings:
    def test_a_replayed_key_gives_the_first_answer(self, strategy: str) -> None:
        book = book_of(strategy, ("A", 100, None))
        posting = Posting("k", (Line("A", 10),))
        first, again = post(book, posting), post(book, posting)
        assert (again.replayed, again.entries) == (True, first.entries)
        with pytest.raises(KeyReused):
            post(book, Posting("k", (Line("A", 11),)))
        assert balance(book) == 110

    def test_a_transfer_is_two_entries_and_balances(self, strategy: str) -> None:
        book = book_of(strategy, ("A", 100, 0), ("B", 0, 0))
        post(book, Posting("k1", (Line("A", -60), Line("B", 60))))
        with pytest.raises(Refused):
            post(book, Posting("k2", (Line("B", 60), Line("A", -60))))
        books = books_of(book)
        assert (balance(book), balance(book, "B"), books.balanced, books.entries) == (40, 60, True, 2)

    def test_numbers_are_exact(self, strategy: str) -> None:
        book = book_of(strategy, ("A", BIGINT - 3, None), ("B", -BIGINT + 3, -BIGINT + 2))
        post(book, Posting("k1", (Line("A", 2),)))
        assert balance(book) == BIGINT - 1
        post(book, Posting("k2", (Line("B", -1),)))
        for refused in (Line("A", 2), Line("B", -1)):
            with pytest.raises(Refused):
                post(book, Posting(f"k-{refused.account}", (refused,)))
        assert (balance(book), balance(book, "B")) == (BIGINT - 1, -BIGINT + 2)

    def test_an_unknown_account_is_refused(self, strategy: str) -> None:
        book = book_of(strategy, ("A", 100, None))
        with pytest.raises(Refused):
            post(book, Posting("k", (Line("A", 1), Line("Z", 10))))
        assert balance(book) == 100

    def test_the_books_tell_what_happened(self, strategy: str) -> None:
        book = book_of(strategy, ("A", 100, None))
        for number in range(5):
            post(book, Posting(f"k{number}", (Line("A", number),)))
        books = books_of(book)
        assert (books.entries, books.final, books.balanced, books.lost_updates) == (5, 110, True, 0)

    def test_what_the_server_forgets_is_lost(
        self,
        strategy: str,
        valkey_server: Callable[..., Valkey],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server = valkey_server()
        monkeypatch.setattr(import_module("ledger.stores.redis"), "redis_client", server.client)
        with Race(strategy, store="redis") as race:
            race.worker("A", +10).finishes()
            server.kill()
            server.start()  # without persistence: what an everysec file loses in a second, it loses at once
            with pytest.raises(Refused):
                race.worker("B", +20).finishes()
            books = race.books()
            assert (books.lost_amount, books.lost_without_trace) == (10, 1)


def test_what_the_server_evicts_of_a_book_is_lost_and_the_rest_is_reported(redis_client: Redis) -> None:
    """`allkeys-lru` evicts key by key: one account is gone, its name and its entries are still there."""
    with Race("redis-atomic", store="redis") as race:
        race.worker("first", +10).finishes()
        race.worker("second", +7, to="B").finishes()
        assert redis_client.delete(store_of(race.book).name("account", "A")) == 1
        books = race.books()
        assert (books.lost_amount, books.lost_updates, books.final) == (10, 1, 107)
        unasked = books_of(race.book)
        assert (unasked.right, unasked.problems[0][:30]) == (False, "account A is not in the store;")
        assert [row.number for row in store_of(race.book).whole_accounts()] == ["B"]


def test_a_lost_reply_asked_again_counts_once(redis_client: Redis) -> None:
    """What a client library does that re-sends: the script has run, its reply was lost, the same comes again."""
    book = book_of("redis-atomic", ("A", 100, None))
    posting = Posting("k", (Line("A", 10),))
    post(book, posting)
    with pytest.raises(Exception, match="k"):
        import_module("ledger.strategies.redis_atomic").RedisAtomic(book).apply(posting)
    assert balance(book) == 110


def test_a_lease_that_ends_loses_money_in_redis_too(redis_client: Redis) -> None:
    with Race("token", store="redis") as race:
        a, b = race.worker("A", +10).runs_to("think"), race.worker("B", +20)
        assert redis_client.delete(f"{race.book.pk}:A") == 1
        b.finishes()
        a.finishes()
        assert_lost(race, 20, by="A")
