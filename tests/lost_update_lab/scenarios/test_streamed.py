"""Rows that come one by one, by psycopg's stream() or by a server-side cursor: those of one look at the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import VIOLATED

QUERY = "SELECT balance FROM account ORDER BY id DESC"


def accounts(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 100), (2, 100)")


def adds(reads: Callable[[Any], Any], sql: Any) -> None:
    with sql.transaction():
        sql.execute("UPDATE account SET balance = %s WHERE id = 1", [reads(sql) + 10])


def streams(lock: str, sql: Any) -> int:
    rows = [balance for (balance,) in sql.cursor().stream(f"{QUERY} {lock}")]
    return rows[-1]


def leaves_off(sql: Any) -> int:
    """Before the last row."""
    return next(iter(sql.cursor().stream("SELECT balance FROM account ORDER BY id")))[0]


def fetches(sql: Any) -> int:
    with sql.cursor(name="of_the_server") as cursor:
        cursor.itersize = 1
        cursor.execute(QUERY)
        return [balance for (balance,) in cursor][-1]


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(
    ("reads", "right"),
    [
        (partial(streams, ""), VIOLATED),
        (partial(streams, "FOR UPDATE"), KEPT),
        (leaves_off, VIOLATED),
        (fetches, VIOLATED),
    ],
)
def test_who_reads_so_and_writes(trial: Callable[..., Result], reads: Any, right: str) -> None:
    """A query of stream() was sent, and its reply was not waited for: what the next worker did came before the server's
    look, or after it."""
    result = trial([(adds, reads)] * 2, setup=accounts, control=False)
    assert (result.verdict, result.exhausted) == (right, True), str(result)


async def adds_later(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as sql, sql.cursor() as cursor:
        rows = [balance async for (balance,) in cursor.stream(QUERY)]
        await cursor.execute("UPDATE account SET balance = %s WHERE id = 1", [rows[-1] + 10])


def test_a_coroutine_that_reads_so(trial: Callable[..., Result], scenario_urls: tuple[str, str]) -> None:
    workers = [worker(name, adds_later, scenario_urls[0]) for name in ("Ann", "Bob")]
    assert trial(workers, setup=accounts, control=False).verdict == VIOLATED


def test_what_returns_no_rows_streams_none(trial: Callable[..., Result]) -> None:
    def adds_at_once(sql: Any) -> int:
        return len(list(sql.cursor().stream("UPDATE account SET balance = balance + 10 WHERE id = 1")))

    result = trial([adds_at_once, adds_at_once], setup=accounts, control=False)
    assert result.verdict == KEPT, str(result)
