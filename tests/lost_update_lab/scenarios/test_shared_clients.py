"""What both workers share although they stand for processes: of a pool each gets its own, a connection is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import redis
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from lost_update_lab import Mistake, Result
from tests.lost_update_lab.scenarios.shop import READ, one_voucher

Trial = Callable[..., Result]


def count(keys: Any) -> None:
    keys.set("count", int(keys.get("count") or 0) + 1)


def count_at_once(keys: Any) -> None:
    keys.incr("count")


@pytest.mark.parametrize(("operation", "verdict"), [(count, "violated"), (count_at_once, "kept")])
def test_a_redis_client(trial: Trial, scenario_urls: tuple[str, str], operation: Any, verdict: str) -> None:
    with redis.Redis.from_url(scenario_urls[1]) as keys:
        result = trial([(operation, keys), (operation, keys)], crashes=1)
    assert (result.verdict, result.exhausted) == (verdict, True)


class Held:
    """As a module keeps it: made by who comes first."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.made = make, None

    def ask(self, query: str) -> Any:
        self.made = self.made or self.make()
        return self.made.execute(query)


def connection() -> Any:
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def session() -> Any:
    url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
    made = Session(create_engine(url))
    made.execute = lambda query, execute=made.execute: execute(text(query))  # type: ignore[method-assign]
    return made


@pytest.mark.parametrize("make", [connection, session])
def test_a_connection(trial: Trial, make: Callable[[], Any]) -> None:
    held = Held(make)
    query = READ.replace("%s", "'XMAS'")

    def operation() -> bool:
        return bool(held.ask(query).fetchone())

    with pytest.raises(Mistake, match=r"one connection .* is used by two workers.*make its own connection"):
        trial([operation, operation], setup=one_voucher)


def test_a_connection_that_no_lock_guards(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    held = Held(connection)

    def operation(sql: Any) -> bool:
        """Its own connection comes first, so no two commands of the other one are under way at a time."""
        sql.execute(READ, ["XMAS"])
        return bool(held.ask("SELECT 1").fetchone())

    with pytest.raises(Mistake, match="one connection to postgres is used by two workers"):
        trial([operation, operation], setup=one_voucher)
