"""An invariant asks for clients as a worker does: `sql`, `redis`. They are no results of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result, worker

Trial = Callable[..., Result]


def opening(sql: Any, redis: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (balance int)")
    sql.execute("INSERT INTO account VALUES (50)")
    redis.set("left", 50)


def withdraw(sql: Any, redis: Any) -> bool:
    """It is checked and written in one command in the database, and in two in Redis."""
    paid = sql.execute("UPDATE account SET balance = balance - 40 WHERE balance >= 40").rowcount == 1
    if int(redis.get("left")) >= 40:
        redis.decrby("left", 40)
    return paid


def balance(sql: Any) -> int:
    return int(sql.execute("SELECT balance FROM account").fetchone()[0])


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    ("law", "verdict"),
    [
        (lambda sql: balance(sql) >= 0, "kept"),
        (lambda redis: int(redis.get("left")) >= 0, "violated"),
        (lambda sql, a, b: balance(sql) == 50 - 40 * (a + b), "kept"),
        (lambda a, b, *, sql: balance(sql) == 50 - 30 * (a + b), "violated"),
        (lambda sql, *paid: balance(sql) == 50 - 40 * sum(paid), "kept"),
        (lambda *paid, redis: int(redis.get("left")) == 50 - 40 * sum(paid), "violated"),
    ],
)
def test_an_invariant_is_handed_clients(trial: Trial, law: Callable[..., bool], verdict: str) -> None:
    assert trial([withdraw, withdraw], setup=opening, invariant=law, control=False).verdict == verdict


def test_one_that_is_asked_at_each_commit_too(trial: Trial) -> None:
    def law(sql: Any) -> bool:
        return balance(sql) != 10

    result = trial([withdraw, withdraw], setup=opening, always=law, control=False)
    assert result.verdict == "violated"


def withdraw_from(sql: Any, amount: int, redis: Any, *, twice: bool = False) -> None:
    for _ in range(1 + twice):
        sql.execute("UPDATE account SET balance = balance - %s", [amount])
    redis.decrby("left", amount)


def test_a_client_may_stand_anywhere(trial: Trial) -> None:
    """`(pay, 60)` with `def pay(sql, amount)`: 60 was taken for the client."""
    workers = [worker("Ann", withdraw_from, 10), worker("Bob", withdraw_from, 5, twice=True)]
    law = lambda sql, redis: (balance(sql), redis.get("left")) == (30, b"35"), "not in each order"
    assert trial(workers, setup=opening, invariant=law, control=False).kept
