"""`manage.py bench strategies` and `lock-tables`, in their quick form: nothing about speed, all about honesty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from loadtest.bench import callers, lock_tables, strategies_goals
from loadtest.bench.strategies_rates import CONTENDERS
from loadtest.servers import mariadb

pytestmark = pytest.mark.usefixtures("committed_db")


def test_bench_strategies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("bench", "strategies", "--quick", "--output", str(tmp_path))
    report = json.loads((tmp_path / "bench.json").read_text())
    assert report["environment"]["versions"]["postgresql"]
    postings = {row["strategy"]: row for row in report["results"] if row["measure"] == "postings"}
    assert set(postings) == set(CONTENDERS)
    assert all(row["right"] and row["per_s"]["min"] > 0 for row in postings.values())
    assert postings["pgbench"]["ratio"]["median"] == 1
    assert all(row["client_us"]["min"] > 0 for row in postings.values())
    assert {"import", "reconcile", "growth"} <= {row["measure"] for row in report["results"]}
    assert all(row["right"] for row in report["results"] if row["measure"] == "reconcile")
    assert len(report["goals"]) == 9
    assert all({"name", "goal", "measured", "met"} <= goal.keys() for goal in report["goals"])
    million = [goal for goal in report["goals"] if "1,000,000" in goal["name"]]
    assert not any(goal["met"] for goal in million), "what did not run is not met"
    assert {path.name for path in tmp_path.glob("*.svg")} >= {"growth-callers.svg", "growth-entries.svg"}
    assert "Goals, in this run" in capsys.readouterr().out


def test_one_part_of_bench_strategies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("bench", "strategies", "--quick", "--part", "import", "--output", str(tmp_path))
    report = json.loads((tmp_path / "bench.json").read_text())
    ways = {row["strategy"]: row["per_s"]["median"] for row in report["results"]}
    assert set(ways) == {"set-based import", "bulk_create", "COPY of ready rows"}
    assert sum(goal["measured"] is not None for goal in report["goals"]) == 2
    assert not any(goal["met"] for goal in report["goals"] if goal["measured"] is None)
    assert "not measured" in capsys.readouterr().out


def test_a_strategy_that_loses_money_is_not_right() -> None:
    assert not callers.rate("no-lock", accounts=1, seconds=0.3, callers=4).right


def test_a_caller_that_gave_up_is_not_counted_and_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(callers.IDLE, "retries", 0)
    assert callers.rate("optimistic-version", accounts=1, seconds=0.3, callers=4).right


def row(strategy: str, ratio: float) -> dict[str, Any]:
    return {"measure": "postings", "strategy": strategy, "accounts": 1, "ratio": {"median": ratio}}


@pytest.mark.parametrize(("ratio", "met"), [(0.65, True), (0.649, False)])
def test_a_goal_is_met_or_missed(ratio: float, met: bool) -> None:
    first, second, *_ = strategies_goals.judge([row("atomic-update", ratio)])
    assert (first["measured"], first["met"]) == (ratio, met)
    assert (second["measured"], second["met"], second["reason"]) == (None, False, "this run left it out")


def test_bench_lock_tables_without_mariadb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(settings.DATABASES, "mariadb", raising=False)
    monkeypatch.setattr(mariadb, "available", lambda: "install mariadb-server")
    rows = lock_tables.run(lock_tables.Plan(rounds=1, seconds=0.1))["results"]
    absent = [each for each in rows if each["store"] == "mariadb"]
    assert {each["reason"] for each in absent} == {"install mariadb-server"}
    assert {each["verdict"] for each in absent} == {"not-run"}
    there = [each for each in rows if each["store"] == "postgres"]
    assert len(there) == 6
    assert all(each["ratio"]["median"] == 1 for each in there if each["strategy"] == "centre-lock")


@pytest.mark.skipif(mariadb.available() is not None, reason="install mariadb-server")
def test_bench_lock_tables_on_mariadb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_tables, "ALIASES", {"mariadb": "mariadb"})
    rows = lock_tables.run(lock_tables.Plan(rounds=1, seconds=0.1))["results"]
    assert [each["per_s"]["min"] > 0 for each in rows] == [True] * 6
