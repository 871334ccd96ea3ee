"""Servers of the explorer's own, and one exploration in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from loadtest.explorer.bounds import Bounds
from loadtest.explorer.search import Result, Search
from loadtest.explorer.servers.postgres import PostgresServer
from loadtest.explorer.servers.redis import RedisServer
from loadtest.explorer.stage import Stage
from loadtest.servers import Postgres, Valkey
from tests.explorer.bank import CONTENTS, Bank

SETTINGS = {"deadlock_timeout": "1h", "fsync": "off", "synchronous_commit": "off"}


@pytest.fixture(autouse=True)
def no_strangers() -> None:
    """What renews for a dead client of another test sleeps until its next turn, asks a server then, and ends: to a
    search in the same process it would be a stranger past the gates."""
    for thread in threading.enumerate():
        if "(_renew)" in thread.name:
            thread.join(60)


@pytest.fixture(scope="session")
def explorer_urls() -> Iterator[tuple[str, str]]:
    with Postgres(settings=SETTINGS) as postgres, Valkey() as valkey:
        yield postgres.url, valkey.url


@pytest.fixture
def stage(explorer_urls: tuple[str, str]) -> Iterator[Callable[..., Stage]]:
    """`stage(deposit, faults=1, …)`: a stage on which that deposit can be explored."""
    opened: list[Any] = []

    def make(deposit: Any, **bounds: Any) -> Stage:
        bank = Bank(deposit, *explorer_urls)
        servers = [PostgresServer(explorer_urls[0], CONTENTS), RedisServer(explorer_urls[1])]
        opened.extend((*servers, bank.admin))
        found = Stage(bank, servers, Bounds(**{"faults": 0, **bounds}))
        found.__enter__()
        opened.append(found)
        return found

    yield make
    for thing in reversed(opened):
        thing.__exit__(None, None, None) if isinstance(thing, Stage) else thing.close()


@pytest.fixture
def explore(stage: Callable[..., Stage]) -> Callable[..., Result]:
    """`explore(deposit, faults=1, …)`: the result of the whole search."""
    return lambda deposit, **bounds: Search(stage(deposit, **bounds)).explore()
