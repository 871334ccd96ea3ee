"""A key is one posting in its book, whichever accounts it names."""

from __future__ import annotations

import hashlib

import pytest
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from ledger.books import KeyReused, open_book, post
from ledger.models import Book, Entry
from ledger.posting import Line, Posting, Refused
from ledger.stores import KeyTaken, store_of
from ledger.stores.sql import ALIASES
from ledger.strategies import STRATEGIES, Locked, find

pytestmark = pytest.mark.usefixtures("committed_db")
#: a lock's strategy posts as `no-lock` does, inside of the lock
EACH = [
    slug for slug, kind in STRATEGIES.items() if kind.stores != ("mariadb",) and not issubclass(kind, Locked)
]
FIRST, OTHER = Posting("k", (Line("A1", 10),)), Posting("k", (Line("A2", 20),))
BETWEEN = Posting("k", (Line("A1", -1), Line("A2", 1)))


def book_of(strategy: str, store: str = "postgres") -> Book:
    store = store if store in find(strategy).stores else find(strategy).stores[0]
    return open_book(strategy, [("A1", 100, 0), ("A2", 100, 0)], store=store, values={"think": [0, 0]})


def balances(book: Book) -> list[int]:
    return [row.balance for row in store_of(book).whole_accounts()]


@pytest.mark.parametrize("second", [OTHER, BETWEEN], ids=["other", "transfer"])
@pytest.mark.parametrize("strategy", EACH)
def test_two_requests_with_one_key_to_different_accounts_are_not_both_applied(strategy, second, monkeypatch):
    book = book_of(strategy)
    kind = find(strategy)
    apply = kind.apply

    def after_the_other(self, posting):
        """Both have looked for the key, and found nothing."""
        apply(self, FIRST)
        return apply(self, posting)

    monkeypatch.setattr(kind, "apply", after_the_other)
    with pytest.raises(KeyReused):
        post(book, second)
    assert balances(book) == [110, 100]


@pytest.mark.parametrize("store", ["mariadb"], indirect=True)
@pytest.mark.parametrize("strategy", ["select-for-update", "atomic-update", "segmented-balance"])
def test_so_it_is_on_mariadb(strategy, store):
    book = book_of(strategy, store)
    post(book, FIRST)
    with pytest.raises(KeyTaken):
        find(strategy)(book).apply(BETWEEN)
    assert balances(book) == [110, 100]


@pytest.mark.parametrize("strategy", ["no-lock", "atomic-update", "single-writer", "redis-atomic"])
def test_an_account_that_comes_twice_in_a_posting_is_refused(strategy):
    """Its second line would go by what was read before the first."""
    book = book_of(strategy)
    with pytest.raises(Refused, match="twice"):
        post(book, Posting("k", (Line("A1", 1), Line("A1", 2))))
    assert balances(book) == [100, 100]


MANY = 32_800  # an all-or-nothing file is one posting; a smallint ends before


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("strategy", ["segmented-balance", "single-writer"])
def test_a_posting_may_have_very_many_lines(strategy):
    numbers = [f"A{number}" for number in range(MANY)]
    accounts = [(number, 0, None) for number in numbers]
    if strategy == "segmented-balance":  # as if so many had gone before it
        book = open_book(strategy, accounts[:1], values={"think": [0, 0]})
        find(strategy)(book).add(Posting("k", (Line("A0", 1),)), Line("A0", 1), MANY)
    else:
        book = open_book(strategy, accounts, values={"think": [0, 0], "timeout": 60.0})
        post(book, Posting("k", tuple(Line(number, 1) for number in numbers)))
    assert sum(balances(book)) == Entry.objects.filter(book_id=book.pk).count()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("store", ["postgres", "mariadb"], indirect=True)
def test_the_migration_numbers_the_entries_that_are_there(store):
    book = book_of("select-for-update", store)
    post(book, BETWEEN)
    post(book, Posting("alone", (Line("A2", 5),)))
    connection = connections[ALIASES[store]]
    before, newest = (
        "0012_exact_keys_on_mariadb",
        MigrationExecutor(connection).loader.graph.leaf_nodes("ledger"),
    )
    try:
        MigrationExecutor(connection).migrate([("ledger", before)])
    finally:  # all the way: the tests after this one find the tables as they are now
        MigrationExecutor(connection).migrate(newest)
    entries = Entry.objects.using(connection.alias).filter(book_id=book.pk).order_by("seq")
    assert list(entries.values_list("key", "place")) == [("k", 0), ("k", 1), ("alone", 0)]
    with pytest.raises(Exception, match="append-only"):
        entries.update(place=7)


def test_an_old_entry_has_a_longer_fingerprint_and_is_recognised() -> None:
    """Entries had all 64 digits of the hash once; what was posted then is not posted again."""
    book = book_of("select-for-update")
    whole = hashlib.sha256(b'[["A1", 10], ""]').hexdigest()
    assert whole.startswith(FIRST.fingerprint)
    assert (FIRST.fits(whole), OTHER.fits(whole)) == (True, False)
    account = book.accounts.get(number="A1")
    Entry.objects.create(
        book=book,
        account=account,
        key="k",
        fingerprint=whole,
        amount=10,
        worker="w",
        balance_before=90,
        balance_after=100,
        read_at=timezone.now(),
        written_at=timezone.now(),
    )
    assert post(book, FIRST).replayed
    with pytest.raises(KeyReused):
        post(book, OTHER)
