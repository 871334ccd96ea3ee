"""A MariaDB of the explorer's own, and one exploration on it in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab import explore as public
from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.embedded import mariadb
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Bounds
from lost_update_lab.search.search import Search, SearchResult
from lost_update_lab.servers.mariadb.server import MariaDBServer
from tests.lost_update_lab import BUDGET
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.bank import TABLES, Bank

Trial = Callable[..., Result]


@pytest.fixture(scope="session")
def explored_mariadb() -> Iterator[mariadb.MariaDB]:
    """Skips with what to install when there is none."""
    if reason := mariadb.available():
        pytest.skip(reason)
    with mariadb.MariaDB(settings=mariadb.EXPLORED_OPTIONS) as server:
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for statement in TABLES:
                cursor.execute(statement)
        yield server


@pytest.fixture
def explore(explored_mariadb: mariadb.MariaDB) -> Callable[..., tuple[SearchResult, Bank]]:
    """`explore(deposit, faults=1, …)`: the result of the whole search, and its system."""

    def search(deposit: Any, **bounds: Any) -> tuple[SearchResult, Bank]:
        server = MariaDBServer(explored_mariadb.connect, driver)
        try:
            bank = Bank(deposit, server, explored_mariadb)
            with Harness(bank, [server], Bounds(**{"faults": 0, **bounds})) as harness:
                return Search(harness).explore(), bank
        finally:
            server.close()

    return search


@pytest.fixture
def address(explored_mariadb: mariadb.MariaDB) -> Iterator[str]:
    """A database of its own on the explorer's MariaDB."""
    with explored_mariadb.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop_test")
        yield explored_mariadb.url.replace("/lab?", "/shop_test?")
        cursor.execute("DROP DATABASE shop_test")


@pytest.fixture
def trial(address: str, scenario_urls: tuple[str, str]) -> Trial:
    return partial(public, database=address, redis=scenario_urls[1], setup=shop.open_shop, budget=BUDGET)
