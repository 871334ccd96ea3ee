"""A book whose store has lost its address: every page says so, and nothing is applied."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from ledger.addresses import NoServers, required
from ledger.books import open_book, post
from ledger.models import Book
from ledger.posting import Busy, Line, Posting
from ledger.reconcile_stored import books_of
from ledger.stores import store_of
from tests.ledger.test_admin import user
from tests.ledger.test_api import send

pytestmark = pytest.mark.usefixtures("committed_db")
BOTH = pytest.mark.parametrize("store", ["redis", "mariadb"], indirect=True)
DEPOSIT = {"account": "A", "amount": 5}


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch, store: str) -> Iterator[Book]:
    """A book on `store`; this process has since lost the address of that server."""
    book = open_book("no-lock" if store == "mariadb" else "token", [("A", 100, None)], store=store)
    with monkeypatch.context() as patch:
        forget(patch, store)
        yield book
    assert store_of(book).whole_accounts()[0].balance == 100


def forget(patch: pytest.MonkeyPatch, store: str) -> None:
    """What a new process would find without the variable."""
    if store == "mariadb":
        patch.delitem(settings.DATABASES, "mariadb")
        return
    patch.delenv("REDIS_URL")

    def redis_client(url: str = "") -> NoReturn:
        required("REDIS_URL")
        raise AssertionError("embedded servers run")

    for module in ("ledger.resources", "ledger.stores.redis", "ledger.strategies.redis_gate"):
        patch.setattr(import_module(module), "redis_client", redis_client)


@pytest.mark.deep_after(1)
@BOTH
def test_the_api_says_what_is_missing_and_that_nothing_is_applied(gone: Book, store: str) -> None:
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    answer = send(client, f"/api/books/{gone.pk}/postings", DEPOSIT, "k")
    assert (answer.status_code, answer.json()["applied"]) == (503, "no")
    assert f"no server for {store} is configured here" in answer.json()["detail"]
    assert f"set {store.upper()}_URL" in answer.json()["detail"]
    assert answer.json()["detail"].endswith("; this request is not applied")
    for path in ("", "/accounts/A", "/reconcile", "/accounts/A/reconcile"):
        assert client.get(f"/api/books/{gone.pk}{path}").status_code == 503
    accounts = [{"account": "A"}]
    fresh = send(client, "/api/books", {"strategy": "token", "store": store, "accounts": accounts})
    assert (fresh.status_code, fresh.json()["applied"]) == (422, "no")
    assert f"set {store.upper()}_URL" in fresh.json()["detail"]


@BOTH
def test_the_admin_shows_a_page_and_not_a_failure(gone: Book, store: str) -> None:
    client = user("ledger.view_book")
    client.raise_request_exception = False
    for name, args in (("book_change", (gone.pk,)), ("book_losses", (gone.pk, "A"))):
        page = client.get(reverse(f"admin:ledger_{name}", args=args))
        assert page.status_code == 503
        assert f"set {store.upper()}_URL" in page.content.decode()
        assert "Nothing was changed" in page.content.decode()


@BOTH
def test_reconcile_names_the_book_and_the_variable(gone: Book, store: str) -> None:
    with pytest.raises(CommandError, match=f"{gone.pk}: no server for {store} .* set {store.upper()}_URL"):
        call_command("reconcile", book=str(gone.pk))


@pytest.mark.parametrize("strategy", ["token", "redlock", "lock-table"])
def test_a_lock_without_its_server_is_busy(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    book = open_book(strategy, [("A", 100, None)])
    forget(monkeypatch, "redis")
    with pytest.raises(Busy, match="REDIS_URL"):
        post(book, Posting("k", (Line("A", 5),)))
    assert books_of(book).final == 100


@pytest.mark.parametrize("strategy", ["redis-gate", "redis-then-database"])
@pytest.mark.parametrize("amount", [5, -5])
def test_where_the_database_decides_redis_may_be_missing(
    strategy: str, amount: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not be asked for, and be missed, once the database has committed."""
    book = open_book(strategy, [("A", 100, 0)])
    forget(monkeypatch, "redis")
    post(book, Posting("k", (Line("A", amount),)))
    assert books_of(book).final == 100 + amount


def test_without_a_database_the_web_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object, **__: object) -> NoReturn:
        raise NoServers("No DATABASE_URL: start one")

    monkeypatch.setattr(Book.objects, "get_queryset", away)
    monkeypatch.setattr("ledger.stores.prepared.Prepared.rows", away)
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root-without-a-database"))
    answer = client.get("/api/books/00000000-0000-4000-8000-000000000000")
    assert (answer.status_code, answer.json()["applied"]) == (503, "no")
    page = client.get(reverse("admin:ledger_book_changelist"))
    assert (page.status_code, page.content.decode()) == (503, "No DATABASE_URL: start one\n")
