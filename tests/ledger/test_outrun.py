"""Strategies that try again when another writer was faster: what their last attempt says, and no wait after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import pytest
from django.db import connections
from django.db.models import F
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from ledger.books import open_book, post
from ledger.models import Account, Book
from ledger.posting import Applied, Busy, Line, Posting
from ledger.stores import store_of
from ledger.strategies import find
from loadtest.faults.scene.proxy import Proxy
from loadtest.servers import Valkey
from tests.ledger.test_certainly_not import locked

pytestmark = pytest.mark.usefixtures("committed_db")
DEPOSIT = Posting("k", (Line("A", 10),))
FASTER = Line("A", 1)


def book_of(slug: str, store: str, retries: int) -> Book:
    return open_book(slug, [("A", 100, 0)], store=store, values={"think": [0, 0], "retries": retries})


def balance(book: Book) -> int:
    return store_of(book).read(DEPOSIT)["A"].balance


def faster(book: Book, key: str) -> None:
    """Another writer, in its own session, which nothing holds up: the balance and all numbers go on."""
    if book.store == "redis":
        find("redis-atomic")(book).apply(Posting(key, (FASTER,)))
        return

    def write() -> None:
        try:
            rows = Account.objects.filter(book=book)
            rows.update(balance=F("balance") + 1, version=F("version") + 1, fence=F("fence") + 1000)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as other:
        other.submit(write).result()


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize(
    ("slug", "store"),
    [
        ("optimistic-version", "postgres"),
        ("optimistic-value", "postgres"),
        ("redis-then-database", "postgres"),
        ("repeatable-read", "postgres"),
        ("serializable", "postgres"),
        ("fenced", "postgres"),
        ("fenced-at-write", "postgres"),
        ("redis-watch", "redis"),
    ],
)
def test_a_posting_outrun_each_time_is_busy_and_waits_between_two_attempts(
    slug: str, store: str, retries: int
) -> None:
    book = book_of(slug, store, retries)
    strategy = find(slug)(book)
    outrun: list[int] = []
    waited: list[int] = []

    def somebody_is_faster() -> None:
        """Another one writes between this one's read and write."""
        outrun.append(1)
        faster(book, f"faster-{len(outrun)}")

    strategy.think = somebody_is_faster  # type: ignore[method-assign]
    strategy.back_off = lambda: waited.append(1)  # type: ignore[method-assign]
    with pytest.raises(Busy, match=f"{retries + 1} "):
        strategy.apply(DEPOSIT)
    assert (len(waited), balance(book)) == (retries, 100 + len(outrun))


def test_a_posting_that_meets_a_locked_row_each_time_is_busy_and_waits_between_two_attempts() -> None:
    book = book_of("row-lock-nowait", "postgres", 2)
    strategy = find(book.strategy)(book)
    waited: list[int] = []
    strategy.back_off = lambda: waited.append(1)  # type: ignore[method-assign]
    with locked(book, "A", "default"), pytest.raises(Busy, match="3 "):
        strategy.apply(DEPOSIT)
    assert (len(waited), balance(book)) == (2, 100)


class TestALostReplyOfExec:
    """EXEC was carried out, and the client heard nothing: redis-py says the same as when another client was faster."""

    @pytest.fixture
    def book(
        self, valkey_server: Callable[..., Valkey], monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Callable[[int], Any]]:
        with Proxy(valkey_server(port=0).port) as proxy:
            client = Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0))
            monkeypatch.setattr(import_module("ledger.stores.redis"), "redis_client", lambda: client)
            lost = iter([proxy.swallow])
            monkeypatch.setattr(
                find("redis-watch"), "think", lambda self: next(lost, lambda: None)()
            )  # right before EXEC
            yield lambda retries: book_of("redis-watch", "redis", retries)

    def test_on_the_last_attempt_it_is_unknown_and_the_key_tells(self, book: Callable[[int], Book]) -> None:
        opened = book(0)
        with pytest.raises(RedisConnectionError):
            find("redis-watch")(opened).apply(DEPOSIT)
        assert balance(opened) == 110
        assert post(opened, DEPOSIT).replayed

    def test_before_it_the_next_attempt_finds_the_key(self, book: Callable[[int], Book]) -> None:
        opened = book(1)
        assert isinstance(post(opened, DEPOSIT), Applied)
        assert balance(opened) == 110
