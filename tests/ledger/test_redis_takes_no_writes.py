"""A Redis that takes no writes now, or has forgotten a whole book: the answer says what became of the money."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

import pytest
from redis import Redis, ResponseError

from ledger.books import open_book, post
from ledger.posting import Busy, Line, Posting
from ledger.reconcile_stored import books_of
from ledger.stores import store_of
from ledger.strategies import locked
from loadtest.servers import Valkey
from tests.ledger.test_import_sigkill import within
from tests.ledger.test_reconcile_command import run

pytestmark = pytest.mark.usefixtures("committed_db")
STRATEGIES = ["no-lock", "redis-atomic", "redis-watch"]


@pytest.fixture
def server(valkey_server: Callable[..., Valkey], monkeypatch: pytest.MonkeyPatch) -> Valkey:
    server = valkey_server()
    monkeypatch.setattr(import_module("ledger.stores.redis"), "redis_client", server.client)
    return server


def full(server: Valkey, redis: Redis) -> None:
    redis.config_set("maxmemory", 1)


def demoted(server: Valkey, redis: Redis) -> None:
    redis.replicaof("127.0.0.1", 1)


def alone(server: Valkey, redis: Redis) -> None:
    redis.config_set("min-replicas-to-write", 1)


def cannot_save(server: Valkey, redis: Redis) -> None:
    (server.data / "dump.rdb").mkdir()  # where the file should go
    redis.config_set("save", "3600 1000000")
    redis.bgsave()
    within(20, "the save has failed", lambda: redis.info("persistence")["rdb_last_bgsave_status"] == "err")


def well_again(redis: Redis) -> None:
    redis.replicaof("NO", "ONE")
    for name, value in (("maxmemory", 0), ("min-replicas-to-write", 0), ("save", "")):
        redis.config_set(name, value)


@pytest.mark.parametrize("struck", [full, demoted, alone, cannot_save])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_server_that_takes_no_writes_is_busy_and_has_written_nothing(
    strategy: str, struck: Callable[[Valkey, Redis], None], server: Valkey
) -> None:
    book = open_book(strategy, [("A", 100, 0), ("B", 0, None)], store="redis")
    transfer = Posting("k", (Line("A", -10), Line("B", 10)))
    with server.client() as redis:
        struck(server, redis)
        with pytest.raises(Busy, match="takes no writes now"):
            post(book, transfer)
        well_again(redis)
    assert store_of(book).find("k") is None
    assert [row.balance for row in store_of(book).whole_accounts()] == [100, 0]
    assert not post(book, transfer).replayed
    assert books_of(book).right


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_book_that_the_server_has_forgotten_as_a_whole_does_not_balance(
    strategy: str, server: Valkey
) -> None:
    book = open_book(strategy, [("A", 100, None)], store="redis")
    post(book, Posting("k", (Line("A", 10),)))
    assert run("--book", str(book.pk))[0] == 0
    server.kill()
    server.start()  # without persistence
    books = books_of(book)
    assert (books.right, books.balanced) == (False, False)
    assert books.problems == ("the store has no account of this book: it has forgotten them all",)
    code, told = run("--book", str(book.pk))
    assert code == 1
    assert "it has forgotten them all" in told


def test_a_command_that_no_server_knows_is_a_mistake_of_its_lock() -> None:
    """The caller was told to come again, and the explorer told of a lock that gave up."""
    book = open_book("no-lock", [("A", 100, 0)])

    @contextmanager
    def mistaken(name: str, redis: Redis) -> Iterator[None]:
        redis.execute_command("LOOK", name)
        yield

    with pytest.raises(ResponseError, match="unknown command"):
        locked("tests:mistaken", mistaken)(book).apply(Posting("k", (Line("A", 10),)))
