"""A step that nobody else can see comes as early as it can. It is told with the next step of its thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.model.commands import Step
from lost_update_lab.scenarios.schedule import told_in


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("A:BEGIN B:BEGIN B:SELECT A:SELECT", "B:BEGIN B:SELECT A:BEGIN A:SELECT"),
        ("A:BEGIN A:SAVEPOINT B:SELECT A:SELECT", "B:SELECT A:BEGIN A:SAVEPOINT A:SELECT"),
        ("A:BEGIN B:SELECT A:crashes", "B:SELECT A:BEGIN A:crashes"),
        ("A:BEGIN B:SELECT", "B:SELECT A:BEGIN"),
        ("A:BEGIN B:SELECT@1 A:SELECT@1", "A:BEGIN B:SELECT@1 A:SELECT@1"),  # time has passed
        ("A:SELECT B:SELECT A:SELECT", "A:SELECT B:SELECT A:SELECT"),
    ],
)
def test_it_is_told_with_the_next_step_of_its_thread(steps: str, told: str) -> None:
    words = steps.split()
    order = told_in(
        [step(each) for each in words], ["BEGIN" in each or "SAVEPOINT" in each for each in words]
    )
    assert " ".join(words[at] for at in order) == told


def step(word: str) -> Step:
    who, _, rest = word.partition(":")
    command, _, at = rest.partition("@")
    return Step(int(at or 0), who, who, "step", command, "", 0)


def setup(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 100)")


def pays(amount: int, sql: Any) -> None:
    with sql.transaction():
        (balance,) = sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()
        sql.execute("UPDATE account SET balance = %s WHERE id = 1", [balance - amount])


def test_a_counterexample_begins_with_the_whole_of_one_worker(trial: Callable[..., Result]) -> None:
    result = trial([(pays, 10), (pays, 20)], setup=setup)
    assert result.schedule
    told = [(move.who, move.command.split()[0]) for move in result.schedule.moves]
    first, other = told[0][0], "A" if told[0][0] == "B" else "B"
    whole = [(other, each) for each in ("BEGIN", "SELECT", "UPDATE", "COMMIT")]
    assert told == [(first, "BEGIN"), (first, "SELECT"), *whole, (first, "UPDATE"), (first, "COMMIT")]
