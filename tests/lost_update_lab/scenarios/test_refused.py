"""Who polls for a row that others have locked (NOWAIT, SKIP LOCKED) hears that it is given back, also unchanged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker

Trial = Callable[..., Result]
SCHEMA = (
    "DROP TABLE IF EXISTS job; CREATE TABLE job (id int PRIMARY KEY, beat int NOT NULL DEFAULT 0);"
    "INSERT INTO job VALUES (1), (2)"
)
LOCK = "SELECT id FROM job WHERE id = {} FOR UPDATE"
NAME = "SELECT pg_try_advisory_xact_lock(7)"


def opened() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(SCHEMA)


def locked(query: str) -> Callable[[Any], str]:
    """In one transaction that changes nothing."""

    def operation(sql: Any) -> str:
        with sql.transaction():
            sql.execute(query)
            sql.execute("SELECT count(*) FROM job")
        return "done"

    return operation


def polls(*queries: str, every: float = 0.05) -> Callable[[Any], str]:
    """Until one transaction has them all."""

    def operation(sql: Any) -> str:
        while True:
            try:
                with sql.transaction():
                    found = [sql.execute(each).fetchone() for each in queries]
                    if all(row and row[0] for row in found):
                        return "done"
            except psycopg.errors.LockNotAvailable:
                pass
            time.sleep(every)

    return operation


def anything_goes() -> bool:
    return True


@pytest.mark.deep
@pytest.mark.parametrize("every", [0.05, 7.0])
@pytest.mark.parametrize(
    ("holds", "poll"),
    [
        (LOCK.format(1), LOCK.format(1) + " NOWAIT"),
        (LOCK.format(1), LOCK.format(1) + " SKIP LOCKED"),
        ("SELECT pg_advisory_xact_lock(7)", NAME),
    ],
)
def test_a_row_that_is_given_back_unchanged_is_news(
    trial: Trial, holds: str, poll: str, every: float
) -> None:
    both = [worker("Ann", locked(holds)), worker("Bob", polls(poll, every=every))]
    result = trial(both, setup=opened, invariant=anything_goes, crashes=1)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


@pytest.mark.deep
@pytest.mark.parametrize("poll", [LOCK.format(1) + " NOWAIT", LOCK.format(1) + " SKIP LOCKED"])
def test_two_that_poll(trial: Trial, poll: str) -> None:
    result = trial([polls(poll), polls(poll)], setup=opened, invariant=anything_goes)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


@pytest.mark.deep
def test_two_that_refuse_each_other_in_turn(trial: Trial) -> None:
    """Each has what the other one needs, and gives it up, and takes it again: that has no end."""
    one, two = LOCK.format(1) + " NOWAIT", LOCK.format(2) + " NOWAIT"
    result = trial([polls(one, two, every=1), polls(two, one, every=1)], setup=opened, budget=20.0)
    assert result.verdict in ("stalled", "kept"), result
