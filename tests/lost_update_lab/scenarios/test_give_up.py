"""A waiter that gives up after some time, and works without the lock: what a search finds is there in a replay, too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab import Result
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


def account(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account; CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 100)")


def deposits_in_any_case(amount: int) -> None:
    """Tries for 1.1 s, every 0.2 s."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"], retry=Retry(NoBackoff(), 3))
    until = time.monotonic() + 1.1
    while not client.set("lock", amount, nx=True, px=10_000) and time.monotonic() + 0.2 <= until:
        time.sleep(0.2)
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        row = sql.execute("SELECT balance FROM account").fetchone()
        assert row
        sql.execute("UPDATE account SET balance = %s", [row[0] + amount])
    client.eval(RELEASE, 1, "lock", amount)


@pytest.mark.deep
def test_a_waiter_that_slept_through_polls_in_the_search_does_not_in_the_replay(trial: Trial) -> None:
    """A lost reply leaves the lock behind. The search was `inconclusive`: in its replay the waiter polled once more."""
    workers = [(deposits_in_any_case, 1), (deposits_in_any_case, 2)]
    result = trial(workers, setup=account, lost_replies=1, control=False)
    assert (result.verdict, result.cause) == (VIOLATED, "")
