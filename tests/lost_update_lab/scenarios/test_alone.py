"""One caller alone: no race, but it may crash half-way, or never hear the reply to its COMMIT and try again."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.conclusion import AT_ONCE
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.under_test.operations import VIOLATED
from tests.lost_update_lab.scenarios.test_under_way import opened

Trial = Callable[..., Result]
ACCOUNTS = """
DROP TABLE IF EXISTS account, paid;
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO account VALUES (1, 100), (2, 0);
CREATE TABLE paid (key text PRIMARY KEY);
"""
OUT, IN = (
    f"UPDATE account SET balance = balance {how} WHERE id = {n}" for how, n in (("- 30", 1), ("+ 30", 2))
)


def connected() -> psycopg.Connection[Any]:
    """For each try another connection."""
    return psycopg.connect(os.environ["DATABASE_URL"])


def pays() -> None:
    with connected() as sql:
        sql.execute(OUT)


def pays_by_a_key() -> None:
    with connected() as sql:
        if sql.execute("INSERT INTO paid VALUES ('k') ON CONFLICT DO NOTHING").rowcount:
            sql.execute(OUT)


def transfers(sql: Any) -> None:
    sql.execute(OUT)
    sql.execute(IN)


def transfers_in_one(sql: Any) -> None:
    with sql.transaction():
        transfers(sql)


def does_nothing(sql: Any) -> None:
    pass


RETRIED = {"lost_replies": 1, "retry": psycopg.OperationalError}


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("operation", "bounds", "word"),
    [
        (pays, RETRIED, VIOLATED),
        (pays_by_a_key, RETRIED, KEPT),
        (pays_by_a_key, {"crashes": 1}, KEPT),
        (transfers, {"crashes": 1}, VIOLATED),
        (transfers_in_one, {"crashes": 1}, KEPT),
        (does_nothing, {"crashes": 1}, INCONCLUSIVE),
    ],
)
def test_a_fault_in_the_middle(trial: Trial, operation: Any, bounds: dict[str, Any], word: str) -> None:
    """Its outcome has to be that of the operation as a whole, done once or (after a crash) not at all."""
    result = trial([worker("Ann", operation)], setup=opened(ACCOUNTS), **bounds)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
    assert "Ann alone, at most 1 fault" in result.bounds


def counts(redis: Any) -> None:
    redis.incr("n")


@pytest.mark.parametrize(
    ("operation", "bounds", "word"),
    [
        (counts, {"crashes": 1}, KEPT),
        (counts, {"crashes": 1, "pauses": 1}, KEPT),
        (counts, {"pauses": 1}, INCONCLUSIVE),
    ],
)
def test_a_single_command_cannot_be_left_half_done(
    trial: Trial, operation: Any, bounds: dict[str, Any], word: str
) -> None:
    """It was inconclusive, for want of a command."""
    result = trial([worker("Ann", operation)], setup=lambda redis: redis.set("n", 0), **bounds)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
    assert (AT_ONCE.format("Ann") in result.notes) == (word == KEPT)


def under_a_key(sql: Any, redis: Any) -> None:
    redis.set("lock", "mine", nx=True)
    sql.execute(OUT)
    redis.delete("lock")


@pytest.mark.deep
def test_a_key_that_a_crash_leaves_is_what_is_told(trial: Trial) -> None:
    """The rows of a whole serial order were told, though a worker that dies may have done nothing."""
    result = trial([under_a_key], setup=opened(ACCOUNTS), crashes=1)
    assert result.verdict == VIOLATED
    told = str(result)
    assert ", and nothing of " in told, told
    assert "key lock: here only" in told, told
    assert "account: here" not in told, told


def transfers_by_itself(sql: Any, redis: Any) -> None:
    """Only one transfer at a time. What a crash leaves is somebody else's business here."""
    if redis.set("lock", 1, nx=True):
        transfers(sql)
        redis.delete("lock")


def test_one_caller_cannot_show_that_an_invariant_overlooks_a_lost_update(trial: Trial) -> None:
    """The control said so: without the lock a crash leaves half of a transfer, which is no serial order."""
    positive = (lambda: True, "anything goes")
    result = trial(
        [transfers_by_itself], setup=lambda sql: sql.execute(ACCOUNTS), crashes=1, invariant=positive
    )
    assert (result.verdict, result.exhausted) == (KEPT, True)
