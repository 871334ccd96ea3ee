"""Servers of the explorer's own, and one exploration in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Bounds
from lost_update_lab.search.search import Search, SearchResult
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer
from tests.lost_update_lab.bank import CONTENTS, Bank


@pytest.fixture
def harness(explorer_urls: tuple[str, str]) -> Iterator[Callable[..., Harness]]:
    """`harness(deposit, faults=1, …)`: a harness on which that deposit can be explored."""
    opened: list[Any] = []

    def make(deposit: Any, contents: Any = "", besides: bool = False, **bounds: Any) -> Harness:
        bank = Bank(deposit, *explorer_urls)
        postgres = PostgresServer(explorer_urls[0], contents or CONTENTS, besides)
        servers = [postgres, RedisServer(explorer_urls[1])]
        opened.extend((*servers, bank.admin))
        found = Harness(bank, servers, Bounds(**{"faults": 0, **bounds}))
        found.__enter__()
        opened.append(found)
        return found

    yield make
    for thing in reversed(opened):
        thing.__exit__(None, None, None) if isinstance(thing, Harness) else thing.close()


@pytest.fixture
def explore(harness: Callable[..., Harness]) -> Callable[..., SearchResult]:
    """`explore(deposit, faults=1, …)`: the result of the whole search."""
    return lambda deposit, **bounds: Search(harness(deposit, **bounds)).explore()
