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
