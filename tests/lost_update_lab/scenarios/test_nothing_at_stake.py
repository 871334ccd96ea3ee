"""An operation that forgets to commit changes nothing, in whatever order: a note says that `kept` tells little then."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.notes import NOTHING_AT_STAKE

Trial = Callable[..., Result]


def wallet(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS wallet")
    sql.execute("CREATE TABLE wallet (balance int)")
    sql.execute("INSERT INTO wallet VALUES (100)")


def pays(commits: bool) -> None:
    connection = psycopg.connect(os.environ["DATABASE_URL"])
    connection.execute("UPDATE wallet SET balance = balance - 10")
    if commits:
        connection.commit()
    connection.close()


@pytest.mark.parametrize("commits", [True, False])
def test_a_forgotten_commit_is_told(trial: Trial, commits: bool) -> None:
    result = trial([(pays, commits)] * 2, setup=wallet, control=False)
    assert result.kept
    assert (NOTHING_AT_STAKE in result.notes) is not commits


def moves(amount: int, sql: Any) -> None:
    with sql.transaction():
        sql.execute("UPDATE wallet SET balance = balance + %s", [amount])


def test_what_cancels_out_was_at_stake(trial: Trial) -> None:
    """Ten there and ten back is as much as before, in every order."""
    result = trial([(moves, 10), (moves, -10)], setup=wallet, control=False)
    assert NOTHING_AT_STAKE not in result.notes


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        (
            {"failovers": 1},
            "no schedule has met any of the failovers: nothing is kept on a server that fails over",
        ),
        ({"thread_deaths": 1}, "no schedule has met any of the thread deaths: no worker has a second thread"),
        ({"lost_replies": 1}, ""),
        ({"faults": 1}, ""),
    ],
    ids=str,
)
def test_a_fault_that_could_not_happen_is_told(trial: Trial, faults: dict[str, int], told: str) -> None:
    """`kept` under a fault that was asked for says nothing if there was none."""
    result = trial([(moves, 10), (moves, 10)], setup=wallet, control=False, **faults)
    assert result.notes == ((told,) if told else ())
