"""The line that repeats a run says what was asked for, and no more."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from loadtest.management.commands import compare, explore, faults
from loadtest.report.command_line import of_plan, of_report

LINES = [
    "--processes 4 --server-processes 8",
    "",
    "--strategy token",
    "--lock tests.loadtest.third_party:right --strategy setnx",
    "--preset demo",
    "--preset demo --users 4 --poll 20ms",
    "--preset article",
    "--strategy select-for-update --workload transfers --users 8 --seconds 2.5 --accounts 3 --unordered",
    "--strategy redis-atomic --store redis --think 1-100ms --before 0-2ms --lease 700ms",
    "--strategy token --workload read-mostly --option reads=0.5",
    "--all --workload stock",
]


def parsed(command: Any, line: str) -> dict[str, Any]:
    parser = command.create_parser("manage.py", "")
    return {**vars(parser.parse_args(shlex.split(line)))}


@pytest.mark.parametrize("line", LINES)
def test_the_line_of_a_comparison_asks_for_the_same(line: str) -> None:
    (plan,) = compare._plans(parsed(compare.Command(), line))
    again = of_plan(plan.as_json())
    begin = "python manage.py compare"
    assert again.startswith(begin)
    (same,) = compare._plans(parsed(compare.Command(), again.removeprefix(begin)))
    assert same == plan
    assert len(again) <= len(f"{begin} {line}")


@pytest.mark.parametrize(
    "line",
    [
        "--all --workload all --seconds 0.2",
        "--workload deposits --workload stock",
        "--preset demo --workload imports",
    ],
)
def test_the_line_of_several_workloads_names_them_all(line: str) -> None:
    plans = compare._plans(parsed(compare.Command(), line))
    options = {"plan": plans[0].as_json(), "workloads": [plan.workload for plan in plans]}
    again = of_report({"options": options}, "compare").removeprefix("python manage.py compare")
    assert compare._plans(parsed(compare.Command(), again)) == plans
    assert len(again) <= len(f" {line}")


@pytest.mark.parametrize(
    "line",
    ["", "--quick", "--strategy token --hazard pause --repeat 3", "--lock tests.loadtest.third_party:right"],
)
def test_the_line_of_faults_asks_for_the_same_seed_included(line: str) -> None:
    plan = faults._plan(parsed(faults.Command(), line))
    again = of_report({"options": {"plan": plan.as_json()}}, "faults")
    same = faults._plan(parsed(faults.Command(), again.removeprefix("python manage.py faults")))
    assert same == plan


@pytest.mark.parametrize(
    "line", ["", "--strategy token --workers 3 --budget 5", "--workload transfers --slack 0"]
)
def test_the_line_of_an_exploration_asks_for_the_same(line: str) -> None:
    options = parsed(explore.Command(), line)
    jobs = explore._jobs(options)
    kept = {name: options[name] for name in ("workload", "workers", "faults", "work", "slack")}
    report = {
        "options": {**kept, "budget": jobs[0].budget},
        "results": [{"strategy": job.strategy} for job in jobs],
    }
    again = of_report(report, "explore")
    assert explore._jobs(parsed(explore.Command(), again.removeprefix("python manage.py explore"))) == jobs


def test_a_file_that_does_not_say_what_was_asked_for_has_the_plain_command() -> None:
    assert of_report({"results": []}, "compare") == "python manage.py compare"
    assert of_report({}, "bench") == "python manage.py bench"
