"""A worker that polls for what another one produces: in a serial order it waits, and the other one goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.scenario import Mistake

Trial = Callable[..., Result]


def stock(redis: Any) -> None:
    redis.set("stock", 10)


def one_account(sql: Any) -> None:
    sql.execute("CREATE TABLE account (balance int); INSERT INTO account VALUES (100)")


def produces(redis: Any) -> None:
    redis.rpush("queue", 5)


def produces_in_front(redis: Any) -> None:
    redis.lpush("queue", 5)
    redis.lpush("queue", 7)


def consumes(redis: Any) -> None:
    while (found := redis.lpop("queue")) is None:
        time.sleep(1)
    redis.incrby("stock", int(found))


def locks_itself_out(sql: Any) -> None:
    with sql.transaction(), psycopg.connect(sql.info.dsn) as another:
        sql.execute("SELECT FROM account FOR UPDATE")
        another.execute("UPDATE account SET balance = 0")


def consumes_by_hand(redis: Any) -> None:
    """Two commands for one: what is put in front meanwhile is dropped."""
    while not (found := redis.lrange("queue", 0, 0)):
        time.sleep(1)
    redis.ltrim("queue", 1, -1)
    redis.incrby("stock", int(found[0]))


@pytest.mark.parametrize(
    ("consumer", "producer", "right"),
    [(consumes, produces, KEPT), (consumes_by_hand, produces_in_front, VIOLATED)],
)
def test_a_consumer_that_polls_is_explored(
    trial: Trial, consumer: Callable[..., None], producer: Callable[..., None], right: str
) -> None:
    """A serial order that began with it did not come to its end: 50,000 polls, and no verdict."""
    result = trial([consumer, producer], setup=stock, control=False)
    assert result.verdict == right


def test_one_for_whom_nobody_produces_is_told(trial: Trial) -> None:
    """It was told of 50,000 decisions."""
    with pytest.raises(Mistake, match="A waits for ever, even when it runs alone, in 'LPOP queue'"):
        trial([consumes, lambda redis: redis.incr("stock")], setup=stock, control=False)


def test_one_that_locks_itself_out_is_told_where(trial: Trial) -> None:
    with pytest.raises(Mistake, match=r"in 'UPDATE account SET balance = 0'.* another connection of its own"):
        trial([locks_itself_out] * 2, setup=one_account, control=False)
