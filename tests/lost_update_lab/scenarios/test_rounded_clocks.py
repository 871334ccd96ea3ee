"""A lease in a row, and a clock that is rounded: just after its end both still are the same, and it is not over yet. A
worker that tries once is only let in a step of that clock later."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.servers.postgres.clock_words import beyond, steps_by

Trial = Callable[..., Result]
CLOCKS = ["now()", "CURRENT_TIMESTAMP(0)", "date_trunc('second', now())", "now()::timestamptz(3)"]


def opened() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        sql.execute("CREATE TABLE lease (name text PRIMARY KEY, until timestamptz NOT NULL)")
        sql.execute("CREATE TABLE account (balance int NOT NULL)")
        sql.execute("INSERT INTO lease VALUES ('account', '2000-01-01')")
        sql.execute("INSERT INTO account VALUES (0)")


def add(clock: str, amount: int) -> int:
    take = f"UPDATE lease SET until = {clock} + interval '10 s' WHERE until < {clock}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
        if not sql.execute(take).rowcount:
            return 0
        [balance] = sql.execute("SELECT balance FROM account").fetchone() or [0]
        sql.execute("UPDATE account SET balance = %s", [balance + amount])
        sql.execute("UPDATE lease SET until = '2000-01-01'")
        return amount


def sums_up(ann: int, bob: int) -> Any:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        return sql.execute("SELECT balance FROM account").fetchone() == (ann + bob,)


@pytest.mark.parametrize(
    "clock", [pytest.param(each, marks=[] if "(0)" in each else [pytest.mark.deep]) for each in CLOCKS]
)
def test_a_pause_outlasts_the_lease(trial: Trial, clock: str) -> None:
    workers = [worker("Ann", add, clock, 10), worker("Bob", add, clock, 20)]
    found = trial(workers, setup=opened, invariant=(sums_up, "an update is lost"), pauses=1, control=False)
    assert found.verdict == "violated", str(found)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("SELECT until < now() FROM lease", 0),
        ("SELECT round(balance) FROM account", 0),
        ("SELECT until < localtimestamp(3) FROM lease", 1),
        ("SELECT extract(epoch FROM now())::int", 1),
        ("SELECT until < date_trunc('minute', now()) FROM lease", 60),
    ],
)
def test_by_how_much_it_goes_on(text: str, seconds: int) -> None:
    assert steps_by(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "SELECT timestamptz 'now'",
        "SELECT 'now'::timestamptz",
        "SELECT CAST('now' AS timestamptz)",
        "SELECT timeofday()",
        'SELECT "now"()',
    ],
)
def test_what_asks_the_real_clock_is_refused(text: str) -> None:
    assert beyond(text)


def test_what_only_says_so_is_not() -> None:
    assert not beyond("SELECT 'now' AS state, timeofday FROM orders WHERE at < now()")
