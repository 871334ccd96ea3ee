"""What was certainly not applied says so: "refused" or "busy", and never "unknown"."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import IntegrityError, connections, transaction
from django.test import Client, override_settings

from ledger.books import open_book, post
from ledger.models import Account, Book
from ledger.posting import BIGINT, Busy, Line, Posting, Refused
from ledger.stores import store_of
from ledger.strategies import find
from tests.ledger.test_api import send

pytestmark = pytest.mark.usefixtures("committed_db")
BOTH = pytest.mark.parametrize("store", ["postgres", "mariadb"], indirect=True)
ALIASES = {"postgres": "default", "mariadb": "mariadb"}
TRANSFER = (Line("A", -10), Line("B", 10))


def balances(book: Book) -> list[int]:
    read = store_of(book).read(Posting("", (Line("A", 0), Line("B", 0))))
    return [read["A"].balance, read["B"].balance]


@BOTH
@pytest.mark.parametrize(
    "strategy", ["atomic-update", "redis-gate", "segmented-balance", "select-for-update", "no-lock"]
)
@pytest.mark.parametrize("lines", [[("B", BIGINT)], [("A", -10), ("B", BIGINT)]])
def test_a_balance_beyond_bigint_is_refused(strategy: str, store: str, lines: list[tuple[str, int]]) -> None:
    book = open_book(strategy, [("A", 100, 0), ("B", BIGINT, 0)], store=store, values={"think": [0, 0]})
    with pytest.raises(Refused, match="range of BIGINT"):
        post(book, Posting("k", tuple(Line(*line) for line in lines)))
    assert balances(book) == [100, BIGINT]


@BOTH
def test_what_was_checked_and_does_not_fit_any_more_is_refused(store: str) -> None:
    book = open_book("check-then-decrement", [("A", BIGINT - 5, 0), ("B", 0, 0)], store=store)
    late, other = find(book.strategy)(book), find("atomic-update")(book)
    late.think = lambda: other.apply(Posting("k1", (Line("A", 4),)))  # type: ignore[assignment, method-assign]
    with pytest.raises(Refused, match="range of BIGINT"):
        late.apply(Posting("k2", (Line("A", 4),)))
    assert balances(book) == [BIGINT - 1, 0]


@contextmanager
def impatient(alias: str) -> Iterator[None]:
    """This thread's session waits no longer than a second for a locked row."""
    connection = connections[alias]
    seconds = {
        "mysql": "SET SESSION innodb_lock_wait_timeout = 1",
        "postgresql": "SET lock_timeout = '200ms'",
    }
    with connection.cursor() as cursor:
        cursor.execute(seconds[connection.vendor])
    try:
        yield
    finally:
        connection.close()


@contextmanager
def locked(book: Book, number: str, alias: str) -> Iterator[None]:
    """Another session holds the row of this account."""
    held, done = Event(), Event()

    def hold() -> None:
        try:
            with transaction.atomic(using=alias):
                list(Account.objects.using(alias).select_for_update().filter(book_id=book.pk, number=number))
                held.set()
                assert done.wait(60)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as other:
        holder = other.submit(hold)
        assert held.wait(60)
        try:
            yield
        finally:
            done.set()
            holder.result()


@BOTH
@pytest.mark.parametrize("strategy", ["no-lock", "select-for-update", "atomic-update", "optimistic-version"])
def test_a_row_lock_timeout_is_busy_and_nothing_was_written(strategy: str, store: str) -> None:
    """InnoDB rolls back the statement that timed out, and not its transaction: the strategy does."""
    book = open_book(strategy, [("A", 100, 0), ("B", 0, 0)], store=store, values={"think": [0, 0]})
    alias = ALIASES[store]
    with locked(book, "B", alias), impatient(alias), pytest.raises(Busy):
        post(book, Posting("k", TRANSFER))
    assert balances(book) == [100, 0]
    post(book, Posting("k", TRANSFER))
    assert balances(book) == [90, 10]


def test_no_book_is_opened_on_a_server_that_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(settings.DATABASES, "mariadb", raising=False)
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    answer = send(
        client, "/api/books", {"strategy": "no-lock", "store": "mariadb", "accounts": [{"account": "A"}]}
    )
    assert answer.status_code == 422, answer.content
    assert "set MARIADB_URL" in answer.json()["detail"]


@pytest.mark.parametrize("strategy", ["zookeeper", "zookeeper-fenced"])
def test_a_lock_whose_server_is_not_given_is_busy(strategy: str) -> None:
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    accounts = [{"account": "A", "opening": 100}]
    book = send(client, "/api/books", {"strategy": strategy, "accounts": accounts}).json()["book"]["id"]
    with override_settings(ZOOKEEPER_HOSTS=""):
        answer = send(client, f"/api/books/{book}/postings", {"account": "A", "amount": 1}, "k")
    assert (answer.status_code, answer.json()["applied"]) == (503, "no")
    assert "ZOOKEEPER_HOSTS" in answer.json()["detail"]
    assert answer.json()["detail"].endswith("; this request is not applied")


@BOTH
def test_a_book_that_could_not_be_opened_is_nowhere(store: str) -> None:
    name = f"half {uuid4()}"
    with pytest.raises(IntegrityError):
        open_book("no-lock", [("A", 1, None), ("A", 2, None)], store=store, name=name)
    found = [
        alias for alias in {"default", ALIASES[store]} if Book.objects.using(alias).filter(name=name).exists()
    ]
    assert found == []
