"""`manage.py bench strategies` and `lock-tables`, in their quick form: nothing about speed, all about honesty."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from ledger.models import Book
from ledger.reconcile_stored import books_of
from loadtest.bench import lock_tables
from loadtest.bench.goals import at_most
from loadtest.bench.measured import Measured, spread
from loadtest.bench.parts import PARTS
from loadtest.bench.strategies import bulk, callers, goals, pgbench, rates
from loadtest.bench.strategies import table as strategies_table
from loadtest.bench.strategies.rates import CONTENDERS
from lost_update_lab.embedded import mariadb

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.mark.whole_command(short=False)
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


@pytest.mark.deep
def test_one_part_of_bench_strategies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("bench", "strategies", "--quick", "--part", "import", "--output", str(tmp_path))
    report = json.loads((tmp_path / "bench.json").read_text())
    ways = {row["strategy"]: row["per_s"]["median"] for row in report["results"]}
    assert set(ways) == set(bulk.WAYS)
    assert sum(goal["measured"] is not None for goal in report["goals"]) == 2
    assert not any(goal["met"] for goal in report["goals"] if goal["measured"] is None)
    assert "not measured" in capsys.readouterr().out


@pytest.mark.deep
def test_a_strategy_that_loses_money_is_not_right() -> None:
    """How soon it loses is luck; that it does is not."""
    assert any(not callers.rate("no-lock", accounts=1, seconds=0.3, callers=4).right for _ in range(20))


@pytest.mark.deep
def test_a_caller_that_gave_up_is_not_counted_and_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(callers.IDLE, "retries", 0)
    assert callers.rate("optimistic-version", accounts=1, seconds=0.3, callers=4).right


def test_a_caller_that_starts_after_the_time_is_over_still_has_a_figure() -> None:
    """The machine stood still meanwhile: a rate of 0 is none, and no other can be compared with it."""
    over = time.monotonic() - 2, time.monotonic() - 1
    assert callers.caller(callers.fresh_book("no-lock", 1), 1, 0)()(over)[0] == 1
    assert lock_tables._caller("centre-lock", "default", 1)()(over) == (1, 0)


@pytest.mark.deep
def test_each_way_to_import_leaves_books_that_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Book] = []
    fresh = callers.fresh_book
    monkeypatch.setattr(bulk, "fresh_book", lambda *of: opened.append(fresh(*of)) or opened[-1])
    rows = list(bulk.imports(nullcontext, 1, 300, lambda _: None))
    assert len(rows) == len(bulk.WAYS)
    assert len(opened) == len(rows) + 1, "the first load is before the clock starts"
    assert all(books_of(book).right for book in opened)
    assert all(row["right"] for row in rows)


def test_an_import_that_writes_less_than_it_says_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bulk.WAYS, "bulk_create", lambda book, given: lambda: None)
    rows = bulk.imports(nullcontext, 1, 300, lambda _: None)
    right = {row["strategy"]: row["right"] for row in rows}
    assert right == dict.fromkeys(bulk.WAYS, True) | {"bulk_create": False}


@pytest.mark.deep
def test_a_pgbench_that_posts_nothing_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rates.one("pgbench", 1, 0.3).right
    monkeypatch.setattr(pgbench, "script", lambda book, accounts: "SELECT 1;\n")
    assert not rates.one("pgbench", 1, 0.3).right


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("who", ["pgbench", "atomic-update"])
def test_a_strategy_or_a_pgbench_that_fails_has_a_reason(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the one that all others are compared with; the goals say why they were not measured."""
    monkeypatch.setattr(rates, "CONTENDERS", ("pgbench", "atomic-update"))
    if who == "pgbench":
        monkeypatch.setattr(pgbench, "script", lambda book, accounts: "SELECT no_such_column;\n")
    else:
        monkeypatch.setattr(callers, "caller", lambda *_: lambda: lambda _: 1 / 0)
    rows = {row["strategy"]: row for row in rates.measure(nullcontext, 1, 1, 0.1)}
    other = ({"pgbench", "atomic-update"} - {who}).pop()
    assert rows[who]["verdict"] == "inconclusive"
    assert rows[other]["right"]
    assert ("ratio" in rows[other]) == (other == "pgbench")
    first, *_ = goals.judge(list(rows.values()))
    assert not first["met"]
    assert "did not run" in first["reason"]
    list(strategies_table.tables(list(rows.values())))


def test_a_reconcile_that_fails_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk.reconcile_alone, "__name__", "loadtest.bench.no_such_module")
    (row,) = bulk.reconciles((10,), 10, lambda _: None)
    assert row["verdict"] == "inconclusive"
    assert "no_such_module" in row["reason"]


@pytest.mark.deep
def test_a_strategy_that_keeps_no_accounts_here_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "CONTENDERS", ("pgbench",))
    rows = {row["strategy"]: row for row in rates.measure(nullcontext, 1, 1, 0.1, ("redis-atomic",))}
    assert rows["redis-atomic"]["verdict"] == "not-run"
    assert "only on redis" in rows["redis-atomic"]["reason"]


@pytest.mark.deep
def test_a_third_party_lock_is_measured_beside_the_strategies(tmp_path: Path) -> None:
    call = ["bench", "strategies", "--quick", "--part", "one-account", "--output", str(tmp_path)]
    call_command(*call, "--lock", "tests.loadtest.third_party:right", "--strategy", "advisory-lock")
    rows = {row["strategy"]: row for row in json.loads((tmp_path / "bench.json").read_text())["results"]}
    assert set(rows) == {*CONTENDERS, "tests.loadtest.third_party:right", "advisory-lock"}
    assert rows["tests.loadtest.third_party:right"]["right"]


def test_the_first_moments_of_pgbench_do_not_count() -> None:
    told = (
        "number of transactions actually processed: 3000\nlatency average = 1 ms\ntps = 1500.0 (without …)\n"
    )
    progress = (
        "progress: 1.0 s, 1000.0 tps, lat 1 ms stddev 1, 0 failed\nprogress: 2.0 s, 2000.0 tps, lat …\n"
    )
    assert pgbench.read(told, progress) == (3000, 2000)
    late = progress.replace("progress: 1.0 s", "progress: 1.9 s", 1)
    assert pgbench.read(told, late) == (3000, 1500), "a tenth of a second is no rate"
    with pytest.raises(LookupError):
        pgbench.read(told.replace("3000", "0").replace("1500.0", "0.0"), progress)


def test_each_contender_has_another_place_in_each_round() -> None:
    turns = [rates.turned(CONTENDERS, turn, 3) for turn in range(3)]
    assert all(sorted(turn) == sorted(CONTENDERS) for turn in turns)
    assert all(len({turn.index(name) for turn in turns}) == 3 for name in CONTENDERS)


def row(strategy: str, ratio: dict[str, float]) -> dict[str, Any]:
    return {"measure": "postings", "strategy": strategy, "accounts": 1, "ratio": ratio}


@pytest.mark.parametrize(
    ("rounds", "state"),
    [
        ((0.65, 0.7, 0.8), "met"),
        ((0.6, 0.7, 0.8), "near"),
        ((0.5, 0.6, 0.7), "near"),
        ((0.5, 0.6, 0.649), "missed"),
    ],
)
def test_a_goal_is_met_near_or_missed(rounds: tuple[float, float, float], state: str) -> None:
    first, second, *_ = goals.judge([row("atomic-update", spread(rounds))])
    assert (first["measured"], first["state"], first["met"]) == (rounds[1], state, state == "met")
    assert (second["measured"], second["met"], second["reason"]) == (None, False, "this run left it out")
    assert second["state"] == "not-measured"


@pytest.mark.parametrize(
    ("rounds", "state"),
    [((1, 2, 4), "met"), ((1, 2, 4.01), "near"), ((3, 5, 6), "near"), ((4.01, 5, 6), "missed")],
)
def test_a_goal_from_above_is_met_near_or_missed(rounds: tuple[float, float, float], state: str) -> None:
    assert at_most("reading", 4, spread(rounds))["state"] == state


def test_no_goal_is_an_absolute_rate() -> None:
    names = [goal["name"] for part in PARTS.values() for goal in part.judge([])]
    assert len(names) > 20
    assert [name for name in names if "/s" in name and "÷" not in name] == []
    assert [name for name in names if "second" in name] == []


def test_an_import_is_held_against_a_copy_by_as_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row["strategy"]: row for row in bulk.imports(nullcontext, 1, 300, lambda _: None)}
    ours, limit = rows[bulk.SET_BASED], rows[bulk.READY_SIDE_BY_SIDE]
    share = ours["per_s"]["median"] / limit["per_s"]["median"]
    assert ours["of_limit"]["median"] == pytest.approx(share, rel=0.01)
    (goal,) = [goal for goal in goals.judge([ours]) if bulk.READY_SIDE_BY_SIDE in goal["name"]]
    assert (goal["goal"], goal["measured"]) == ("≥ 0.65", pytest.approx(share, rel=0.01))


@pytest.mark.deep
def test_bench_lock_tables_without_mariadb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(settings.DATABASES, "mariadb", raising=False)
    monkeypatch.setattr(mariadb, "available", lambda: "install mariadb-server")
    found = Measured()
    lock_tables.run(lock_tables.LockTablesPlan(rounds=1, seconds=0.1), found)
    absent = [each for each in found.results if each["store"] == "mariadb"]
    assert {each["reason"] for each in absent} == {"install mariadb-server"}
    assert {each["verdict"] for each in absent} == {"not-run"}
    there = [each for each in found.results if each["store"] == "postgres"]
    assert len(there) == 6
    assert all(each["ratio"]["median"] == 1 for each in there if each["strategy"] == "centre-lock")


@pytest.mark.skipif(mariadb.available() is not None, reason="install mariadb-server")
@pytest.mark.deep
def test_bench_lock_tables_on_mariadb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_tables, "ALIASES", {"mariadb": "mariadb"})
    found = Measured()
    lock_tables.run(lock_tables.LockTablesPlan(rounds=1, seconds=0.1), found)
    assert [each["per_s"]["min"] > 0 for each in found.results] == [True] * 6
