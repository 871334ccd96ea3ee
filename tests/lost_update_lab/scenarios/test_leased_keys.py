"""Keys with a lease count like others, as long as no time has passed and no fault has struck."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result

Trial = Callable[..., Result]


def opened(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 50)")


def with_leases(sql: Any, redis: Any) -> None:
    opened(sql)
    redis.set("session", "user 1, hits 0", ex=3600)
    redis.set("cart", json.dumps({"items": [], "at": 0}), ex=3600)


def reads_through(sql: Any, redis: Any) -> None:
    if redis.get("balance") is None:
        (balance,) = sql.execute("SELECT balance FROM account").fetchone()
        redis.set("balance", balance, ex=600)


def writes_and_forgets(sql: Any, redis: Any) -> None:
    sql.execute("UPDATE account SET balance = balance + 1")
    redis.delete("balance")


def is_seen(redis: Any) -> None:
    if redis.get("session"):
        redis.set("session", "user 1, hits 1", ex=3600)


def logs_out(redis: Any) -> None:
    redis.delete("session")


def puts(item: int, redis: Any) -> None:
    cart = json.loads(redis.get("cart"))
    redis.set("cart", json.dumps({"items": [*cart["items"], item], "at": time.time()}), ex=3600)


@pytest.mark.parametrize(
    ("workers", "key"),
    [
        ([reads_through, writes_and_forgets], "balance: here only"),
        ([is_seen, logs_out], "session: here only"),
        ([(puts, 1), (puts, 2)], "cart: here string b"),
    ],
    ids=["stale", "logged in again", "an item is lost"],
)
def test_a_lease_is_no_excuse(trial: Trial, workers: list[Any], key: str) -> None:
    """Neither that a key was there, nor a value with a time in it, was compared."""
    result = trial(workers, setup=with_leases, control=False)
    assert result.verdict == "violated"
    assert f"key {key}" in str(result)


def locked(amount: int, sql: Any, redis: Any) -> bool:
    """The lock is left behind by a crash, and is over after a pause."""
    if not redis.set("lock", 1, nx=True, ex=30):
        return False
    sql.execute("UPDATE account SET balance = balance + %s", [amount])
    redis.delete("lock")
    return True


def adds(amount: int, sql: Any, redis: Any) -> None:
    while not locked(amount, sql, redis):
        time.sleep(0.1)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("faults", [{}, {"crashes": 1}])
def test_a_lock_that_ends_by_itself(trial: Trial, faults: dict[str, int]) -> None:
    result = trial([(adds, 1), (adds, 2)], setup=opened, control=False, **faults)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)
