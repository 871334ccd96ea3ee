"""Each worker is a process that has just begun: it finds nothing that the first run, or another worker, has left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.under_test.operations import VIOLATED
from tests.lost_update_lab.scenarios.test_under_way import Operation, opened

Trial = Callable[..., Result]
SCHEMA = """
DROP TABLE IF EXISTS inbox, booked;
CREATE TABLE inbox (event text);
CREATE TABLE booked (event text);
CREATE TABLE IF NOT EXISTS bounds (most int);
TRUNCATE bounds;
INSERT INTO bounds VALUES (100);
"""
BOOK = "INSERT INTO booked VALUES ('e')"
done: set[str] = set()
known: dict[str, int] = {}


class Process:
    last = ""
    token = ""


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    yield
    done.clear()
    known.clear()
    Process.last = Process.token = ""
    limit.cache_clear()
    claim.cache_clear()


def by_a_set(sql: Any) -> None:
    sql.execute("INSERT INTO inbox VALUES ('e')")
    if "e" not in done:
        sql.execute(BOOK)
    done.add("e")


def by_a_dict(sql: Any) -> None:
    sql.execute("INSERT INTO inbox VALUES ('e')")
    if known.setdefault("e", 0) == 0:
        sql.execute(BOOK)
    known["e"] += 1


def by_an_attribute(sql: Any) -> None:
    sql.execute("INSERT INTO inbox VALUES ('e')")
    if Process.last != "e":
        sql.execute(BOOK)
    Process.last = "e"


def is_booked_once() -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return connection.execute("SELECT count(*) <= 1 FROM booked").fetchone() == (True,)


@pytest.mark.deep
@pytest.mark.parametrize(
    "operation", [by_a_set, by_a_dict, by_an_attribute], ids=["set", "dict", "attribute"]
)
def test_what_was_done_is_remembered_by_a_process_alone(trial: Trial, operation: Operation) -> None:
    """The first run filled it, nothing was done in the search, and that was kept."""
    result = trial([operation] * 2, setup=opened(SCHEMA), invariant=is_booked_once, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


@pytest.mark.deep
def test_by_one_that_comes_again(trial: Trial) -> None:
    again = {"crashes": 1, "retry": "redelivered"}
    result = trial([worker("Ann", by_a_set)], setup=opened(SCHEMA), invariant=is_booked_once, **again)
    assert result.verdict == VIOLATED, str(result)


def reenters(sql: Any, redis: Any) -> None:
    """Reentrant within its process: right, where each process has a token of its own."""
    Process.token = Process.token or uuid4().hex
    while not redis.set("lock", Process.token, nx=True) and redis.get("lock") != Process.token.encode():
        time.sleep(1)
    [(count,)] = sql.execute("SELECT count(*) FROM booked").fetchall()
    if not count:
        sql.execute(BOOK)
    redis.delete("lock")


@pytest.mark.deep
def test_a_token_that_is_drawn_once_is_each_processs_own(trial: Trial) -> None:
    result = trial([reenters] * 2, setup=opened(SCHEMA), invariant=is_booked_once, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


@cache
def limit() -> int:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return int(connection.execute("SELECT most FROM bounds").fetchall()[0][0])


@cache
def claim() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(BOOK)


def claims(sql: Any) -> None:
    claim()
    sql.execute("INSERT INTO inbox VALUES ('e')")


def claims_anew(sql: Any) -> None:
    claim.cache_clear()
    claims(sql)


@cache
def settings() -> dict[str, str]:
    return {"event": "e"}


def books_within_the_limit(sql: Any) -> None:
    if limit() > len(settings()):
        sql.execute("INSERT INTO inbox VALUES ('e')")


def books_by_settings(sql: Any) -> None:
    sql.execute("INSERT INTO inbox VALUES (%s)", [settings()["event"]])


@pytest.mark.parametrize(
    ("operation", "word"),
    [
        (claims, INCONCLUSIVE),
        (claims_anew, VIOLATED),
        (books_within_the_limit, INCONCLUSIVE),
        (books_by_settings, KEPT),
    ],
)
def test_a_cached_function_that_asks_a_server(trial: Trial, operation: Operation, word: str) -> None:
    """Its command was never sent in the search: kept. One that asks nobody is no matter."""
    result = trial([operation] * 2, setup=opened(SCHEMA), invariant=is_booked_once, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
    if word == INCONCLUSIVE:
        assert "() is cached, and asks a server" in result.cause
        assert "cache_clear()" in result.remedy
