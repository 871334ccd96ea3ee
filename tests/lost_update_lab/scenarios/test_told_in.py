"""A step that nobody else can see comes as early as it can. It is told with the next step of its thread."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lost_update_lab import Result
from lost_update_lab.model.commands import Step
from lost_update_lab.scenarios.schedule import told_in
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem


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


def test_a_counterexample_begins_with_the_whole_of_one_worker(trial: Callable[..., Result]) -> None:
    result = trial([(redeem, "XMAS", 1), (redeem, "XMAS", 2)], setup=one_voucher)
    assert result.schedule
    told = [(move.who, move.command.split()[0]) for move in result.schedule.moves]
    first, other = told[0][0], "A" if told[0][0] == "B" else "B"
    whole = [(other, each) for each in ("BEGIN", "SELECT", "UPDATE", "INSERT", "COMMIT")]
    assert told == [(first, "BEGIN"), (first, "SELECT"), *whole, *[(first, each) for _, each in whole[2:]]]
