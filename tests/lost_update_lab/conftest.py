"""Servers of the explorer's own, and one exploration in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Any

import pytest

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Bounds
from lost_update_lab.search.search import Search, SearchResult
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer
from tests.lost_update_lab.bank import CONTENTS, Bank
from tests.lost_update_lab.staying import watch


def pytest_configure(config: pytest.Config) -> None:
    told = "the server is random there, or is made to answer otherwise"
    config.addinivalue_line("markers", f"answers_change: {told} (see answers_stay)")


@pytest.fixture(autouse=True)
def answers_stay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unless the test is marked `answers_change`."""
    changed = watch(monkeypatch)
    yield
    if not request.node.get_closest_marker("answers_change"):
        assert changed == [], "the same question got another answer"


def opened(
    urls: tuple[str, str], deposit: Any, contents: Any = "", besides: bool = False, **bounds: Any
) -> AbstractContextManager[Harness]:
    return standing(Bank(deposit, *urls), urls, contents, besides, **bounds)


@contextmanager
def standing(
    bank: Bank, urls: tuple[str, str], contents: Any = "", besides: bool = False, **bounds: Any
) -> Iterator[Harness]:
    with ExitStack() as stack:
        stack.enter_context(closing(bank.admin))
        postgres = stack.enter_context(closing(PostgresServer(urls[0], contents or CONTENTS, besides)))
        servers = [postgres, stack.enter_context(closing(RedisServer(urls[1])))]
        yield stack.enter_context(Harness(bank, servers, Bounds(**{"faults": 0, **bounds})))


@pytest.fixture
def harness(explorer_urls: tuple[str, str]) -> Iterator[Callable[..., Harness]]:
    """`harness(deposit, faults=1, …)`: a harness on which that deposit can be explored."""
    with ExitStack() as stack:
        yield lambda deposit, *args, **bounds: stack.enter_context(
            opened(explorer_urls, deposit, *args, **bounds)
        )


@pytest.fixture
def explore(explorer_urls: tuple[str, str]) -> Callable[..., SearchResult]:
    """`explore(deposit, faults=1, …)`: the result of the whole search."""

    def explored(deposit: Any, **bounds: Any) -> SearchResult:
        with opened(explorer_urls, deposit, **bounds) as harness:
            return Search(harness).explore()

    return explored
