"""The runner itself, with steps that do nothing: each is stored once, whatever comes between."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from loadtest.background.runner import Runner, steps, stop
from loadtest.models import Result, Trial
from loadtest.trials import records

pytestmark = pytest.mark.usefixtures("committed_db")


class Steps(Runner):
    """`broken`: raises in its first step; `late`: another worker stores the step while this one runs it."""

    commands = ("steps",)
    broken = late = False

    def step(self, row: Trial, at: int) -> list[Result]:
        if self.broken and at == 0:
            raise ZeroDivisionError("the step")
        if self.late:
            self.late = False
            Trial.objects.filter(pk=row.pk).update(options=row.options | {"done": at + 1, "at": None})
        return [Result(trial=row, strategy=row.options["strategies"][at], verdict="kept")]

    def failed(self, row: Trial, at: int, error: Exception) -> Result:
        return Result(
            trial=row, strategy=row.options["strategies"][at], verdict="not-run", data={"reason": str(error)}
        )


@pytest.fixture
def row() -> Trial:
    return records.begin("steps", workload="deposits", store="postgres", **steps(["setnx", "token"]))


def found(row: Trial) -> list[tuple[str, str]]:
    return list(row.results.order_by("pk").values_list("strategy", "verdict"))


def test_a_request_is_run_step_after_step_and_ends(row: Trial) -> None:
    runner = Steps()
    assert runner.waiting() == [row.pk]
    assert [runner.advance(row.pk) for _ in range(3)] == [True, True, False]
    assert runner.waiting() == []
    assert found(row) == [("setnx", "kept"), ("token", "kept")]


def test_what_a_command_line_runs_is_left_to_it() -> None:
    row = records.begin("steps", workload="deposits", store="postgres")
    assert Steps().waiting() == []
    records.close(row)


def test_a_failing_step_is_reported_and_the_next_one_runs(row: Trial) -> None:
    runner = Steps()
    runner.broken = True
    while runner.advance(row.pk):
        pass
    assert found(row) == [("setnx", "not-run"), ("token", "kept")]


def test_a_step_that_another_worker_has_stored_is_not_stored_twice(row: Trial) -> None:
    runner = Steps()
    runner.late = True
    assert runner.advance(row.pk)
    assert found(row) == []  # the other worker's are not written by this test
    assert runner.advance(row.pk)
    assert found(row) == [("token", "kept")]
    assert runner.waiting() == []


def test_one_that_is_stopped_while_a_step_runs_ends_after_it(row: Trial) -> None:
    class Stopped(Steps):
        def step(self, row: Trial, at: int) -> list[Result]:
            assert stop(row.pk)
            assert not stop(row.pk)
            assert self.waiting() == [row.pk]
            return super().step(row, at)

    assert Stopped().advance(row.pk)
    assert (Stopped().waiting(), found(row)) == ([], [("setnx", "kept")])


def test_requests_of_older_versions_are_brought_over_and_end() -> None:
    """They listed their finished steps, or counted their results."""
    about = {
        "workload": "deposits",
        "store": "postgres",
        "strategies": ["no-lock", "token"],
        "started_by": None,
    }
    listed = records.begin("explore", **about, done=["no-lock"], at="token")
    counted = records.begin("swarm", **about, at=1)
    command_line = records.begin("faults", workload="deposits", store="postgres", strategies=["token"])
    Result.objects.create(trial=counted, strategy="no-lock", verdict="lost")
    migration = import_module("loadtest.migrations.0004_steps_are_counted")
    migration.count_steps(apps, SimpleNamespace(connection=connection))
    for old in (listed, counted, command_line):
        old.refresh_from_db()
    assert (listed.options["done"], listed.options["at"], bool(listed.ended)) == (1, None, True)
    assert (counted.options["done"], bool(counted.ended)) == (1, True)
    assert ("done" in command_line.options, command_line.ended) == (False, None)
    records.close(command_line)
