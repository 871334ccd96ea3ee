"""`ignore=`: what outcomes are compared without."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Mistake, Result

Trial = Callable[..., Result]


def accounts(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account, tried")
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int, tries int)")
    sql.execute("CREATE TABLE tried (id int PRIMARY KEY, times int)")
    sql.execute("INSERT INTO account VALUES (1, 50, 0)")
    sql.execute("INSERT INTO tried VALUES (1, 0)")


def add(amount: int, sql: Any, redis: Any) -> None:
    """What it counts is another number in each order, and no serial order comes to it."""
    while not redis.set("lock", 1, nx=True):
        redis.incr("tries:1")
        sql.execute("UPDATE account SET tries = tries + 1")
        sql.execute("UPDATE tried SET times = times + 1")
        time.sleep(0.1)
    (balance,) = sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()
    sql.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + amount])
    redis.delete("lock")


BOTH = [(add, 40), (add, 30)]
ALL = ["tried", "account.tries", "redis:tries:*"]


def test_what_was_counted(trial: Trial) -> None:
    """A right lock was accused, and nobody could say that a count of tries is no money."""
    result = trial(BOTH, setup=accounts, ignore=ALL, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)
    assert f"not compared, as `ignore` asks: {', '.join(ALL)}" in result.notes


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("compared", ALL)
def test_what_is_not_named_is_compared(trial: Trial, compared: str) -> None:
    some = [each for each in ALL if each != compared]
    assert trial(BOTH, setup=accounts, ignore=some, control=False).verdict == "violated"


@pytest.mark.parametrize(
    ("ignore", "told"),
    [
        ("acount", "ignore names no table and no column: 'acount' (account?)"),
        (["account.trys"], "ignore names no table and no column: 'account.trys' (account.tries?)"),
        ([3], "ignore takes tables, columns and patterns of keys"),
        (3, "ignore takes tables, columns and patterns of keys"),
    ],
)
def test_what_is_no_name(trial: Trial, ignore: Any, told: str) -> None:
    with pytest.raises(Mistake) as raised:
        trial(BOTH, setup=accounts, ignore=ignore)
    assert told in str(raised.value)
