"""A text of several statements has several results, and a worker may go by each of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

KEPT, VIOLATED = "kept", "violated"


def account(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 100)")


def adds(lock: str, sql: Any) -> int:
    """The first result is the same each time."""
    with sql.transaction():
        cursor = sql.execute(f"SELECT 'the balance is'; SELECT balance FROM account {lock}")
        assert cursor.nextset()
        (balance,) = cursor.fetchone()
        sql.execute("UPDATE account SET balance = %s", [balance + 10])
    return balance


def reads_after_a_write(sql: Any) -> int:
    cursor = sql.execute("UPDATE account SET balance = balance + 10; SELECT balance FROM account")
    assert cursor.nextset()
    (balance,) = cursor.fetchone()
    return balance


@pytest.mark.parametrize(
    ("operation", "right"),
    [(partial(adds, ""), VIOLATED), (partial(adds, "FOR UPDATE"), KEPT), (reads_after_a_write, KEPT)],
)
def test_a_worker_goes_by_the_second_result(trial: Any, operation: Any, right: str) -> None:
    """Only the first was noted: what a worker did next was "not repeatable", or what it had done another time."""
    result = trial([operation, operation], setup=account, control=False)
    assert (result.verdict, result.exhausted) == (right, True), str(result)
    assert result.schedules > 1
