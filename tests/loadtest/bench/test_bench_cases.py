"""The cases of `bench explorer`: the explorer is right on each, and a bench without its peer says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import call_command

from loadtest.bench import explorer
from loadtest.bench.explorer import cores as explorer_cores
from loadtest.bench.explorer import frontrun_program
from loadtest.bench.explorer import goals as explorer_goals
from loadtest.bench.explorer import peer as explorer_peer
from loadtest.bench.explorer import rounds as explorer_rounds
from loadtest.bench.explorer import table as explorer_table
from loadtest.bench.explorer.cases import CASES
from loadtest.bench.explorer.peer import PEER
from loadtest.bench.explorer.search import REAL, harness_for
from loadtest.bench.locks.peer_python import NotInstalled
from loadtest.bench.parts import PARTS
from loadtest.servers import Postgres
from lost_update_lab.model.system import UNBROKEN, Judgement
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.runs.found import Found
from lost_update_lab.search.search import Search

LONGER = {"no lock, three deposits each", "no lock, four workers"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] if name in LONGER else []) for name in CASES]
)
def test_the_explorer_is_right_on_every_case(explorer_urls: tuple[str, str], name: str) -> None:
    row = next(explorer.ours(CASES[name], *explorer_urls))  # the reduced search
    assert (row["verdict"], row["right"]) == (CASES[name].right, True)
    assert row["replayed"] == ("10 of 10" if CASES[name].right == "lost" else "")


def test_the_rows_that_are_compared_with_a_peer_run_real_code(explorer_urls: tuple[str, str]) -> None:
    usual, unreduced = explorer.ours(CASES["no lock"], *explorer_urls)
    assert usual["played"] > 0, "what `manage.py explore` does, and says"
    assert (unreduced["played"], unreduced["right"]) == (0, True)


def test_a_search_that_executes_every_poll_has_nothing_to_watch_before(
    explorer_urls: tuple[str, str],
) -> None:
    with harness_for(CASES["no lock"], *explorer_urls, REAL) as harness:
        connecting = harness.runs
        found = Search(harness).explore()
        assert (connecting, found.schedules, harness.runs) == (1, 6, 1 + 2 + 6), (
            "two, until its clients are warm"
        )


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres(settings=explorer.SETTINGS) as server:
        yield server


@pytest.mark.deep
@pytest.mark.parametrize("name", explorer_cores.HOW)
def test_each_core_searches_the_whole_case_on_servers_of_its_own(postgres: Postgres, name: str) -> None:
    row = explorer_cores.measure(name, "no lock", postgres, 20.0)
    assert row["schedules"] == 6 * (os.cpu_count() or 1), row
    assert (row["verdict"], row["right"]) == ("lost", True)
    assert (row["played"] > 0) is (name == explorer_cores.PLAYED_CORES)


@pytest.mark.deep
def test_a_process_that_fails_is_no_figure(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer_cores, "_database", lambda postgres, name: postgres.url + "&dbname=nowhere")
    row = explorer_cores.measure(explorer_cores.REAL_CORES, "no lock", postgres, 20.0)
    assert row["verdict"] == "inconclusive"
    assert "nowhere" in row["reason"]
    assert "schedules_per_s" not in row


def core(case: str, schedules: int, seconds: float, of_plain: float, **more: Any) -> dict[str, Any]:
    about = {"strategy": explorer_cores.REAL_CORES, "case": case, "right": True}
    return {**about, "schedules": schedules, "seconds": seconds, "of_plain": of_plain, **more}


def test_schedules_by_real_code_are_held_against_plain_runs_and_the_ledger_against_them() -> None:
    rows = [core("a", 100, 1, 0.2), core("b", 4900, 9, 0.3)]
    rows.append({"strategy": explorer.LEDGER, "case": "x", "schedules_per_s": 300})
    plain, ledger, *_ = explorer_goals.judge(rows)
    assert (plain["measured"], plain["state"]) == (0.25, "met")
    assert (ledger["measured"], ledger["state"]) == (0.6, "met"), "300 to 500: the cases are pooled"
    slow, *_ = explorer_goals.judge([core("a", 100, 1, 0.01), core("b", 100, 1, 0.02)])
    assert (slow["state"], slow["met"]) == ("missed", False)
    split, *_ = explorer_goals.judge([core("a", 100, 1, 0.01), core("b", 100, 1, 0.3)])
    assert (split["state"], split["met"]) == ("near", False)
    absent, *_ = explorer_goals.judge(rows[2:])
    assert (absent["measured"], absent["reason"]) == (None, explorer_goals.LEFT_OUT)


@pytest.mark.parametrize(
    ("amiss", "reason"),
    [
        ({"reason": "a process did not finish"}, "a process did not finish"),
        ({"verdict": "inconclusive", "right": False}, "the search of b came to: inconclusive"),
    ],
)
def test_a_search_that_failed_leaves_no_figure_of_the_others(amiss: dict[str, Any], reason: str) -> None:
    whole = core("a", 900, 1, 0.5)
    goal = next(iter(explorer_goals.judge([whole, {**whole, "case": "b", **amiss}])))
    assert (goal["measured"], goal["met"], goal["reason"]) == (None, False, reason)


@pytest.mark.deep
def test_a_search_that_was_cut_short_is_not_right(postgres: Postgres) -> None:
    row = explorer_cores.measure(explorer_cores.REAL_CORES, "FOR UPDATE", postgres, 0.000_001)
    assert (row["verdict"], row.get("right", False)) == ("inconclusive", False), row
    assert "budget" in row["reason"], "it ended before the search had begun"


def test_a_peer_that_cannot_be_installed_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*args: Any, **keywords: Any) -> None:
        raise NotInstalled("not installed: no network")

    monkeypatch.setattr(explorer_peer, "python_with", lacking)
    row = explorer_peer.measure(CASES["no lock"], 1.0, False, "", "")
    assert (row["verdict"], row["reason"]) == ("not-run", "not installed: no network")
    ours = {"strategy": explorer.USUAL, "case": "no lock", "verdict": "lost", "right": True, "played": 1,
            "schedules": 3, "schedules_per_s": 1.0, "steps_per_s": 2.0, "replayed": ""}  # fmt: skip
    other = {**ours, "strategy": explorer.UNREDUCED, "schedules": 6}
    _, factors, compared = explorer_table.tables([ours, other, row])
    assert list(factors.columns[3].cells) == ["2.0"]
    assert not compared.row_count


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`peer(shell)`: an environment whose `frontrun` is this script; returns a file that it may write."""

    def make(shell: str) -> Path:
        frontrun = tmp_path / explorer_peer.PEER
        frontrun.write_text(f"#!/bin/sh\nfile={tmp_path}/said\n{shell}\n")
        frontrun.chmod(0o755)
        monkeypatch.setattr(explorer_peer, "python_with", lambda *_, **__: tmp_path / "python")
        monkeypatch.setattr(explorer_peer, "MARGIN", 5.0)
        return tmp_path / "said"

    return make


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("hangs", ["wait", "exit 0"])
def test_what_a_peer_has_started_ends_with_it(peer: Callable[[str], Path], hangs: str) -> None:
    said = peer(f"sleep 600 </dev/null >/dev/null 2>&1 & echo $! >$file; {hangs}")
    row = explorer_peer.measure(CASES["no lock"], 0.1, False, "", "")
    assert row["reason"] == ("no answer within 5.2 s" if hangs == "wait" else "no answer")
    pid = int(said.read_text())
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "it lives on, with its sessions"
        time.sleep(0.01)


@pytest.mark.deep
def test_a_peer_that_hangs_in_its_replays_has_answered_before(peer: Callable[[str], Path]) -> None:
    peer("""echo '{"schedules": 8, "seconds": 2, "verdict": "lost", "cause": ""}'; sleep 600""")
    row = explorer_peer.measure(CASES["no lock"], 0.1, False, "", "")
    assert (row["schedules_per_s"], row["right"], row["replayed"]) == (4, True, "hangs")


STUB = """
import json, time
from types import SimpleNamespace
clock, ahead = time.perf_counter, 1000  # an import of 1000 s
time.perf_counter = lambda: clock() + ahead
def explore(*, setup, reproduce_on_failure, **options):
    global ahead
    setup()
    ahead += reproduce_on_failure * 1000
    return SimpleNamespace(num_explored=6, property_holds=False, inconclusive_reason=None,
                           reproduction_successes=reproduce_on_failure, reproduction_attempts=reproduce_on_failure)
"""


def test_of_a_peer_the_search_alone_is_timed(tmp_path: Path, explorer_urls: tuple[str, str]) -> None:
    """Neither its imports nor its replays: ours are not in our time."""
    (tmp_path / "frontrun.py").write_text(STUB)
    script = str(frontrun_program.__file__)
    done = subprocess.run(
        [sys.executable, script, "no lock", *explorer_urls, "5"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    searched, replayed = map(json.loads, done.stdout.splitlines())
    assert searched["seconds"] < 1000
    assert replayed == {**searched, "replayed": "10 of 10"}


def row(who: str, rate: float, verdict: str = "kept", replayed: str = "", case: str = "a") -> dict[str, Any]:
    return {"strategy": who, "case": case, "schedules": rate, "seconds": 1, "schedules_per_s": rate,
            "verdict": verdict, "right": verdict == "kept", "replayed": replayed}  # fmt: skip


def test_a_peer_is_compared_round_by_round_where_it_is_faster() -> None:
    given = {"one": iter([20, 10, 30]), "any": iter([12, 12, 12])}
    answers = iter([60, 60, 60])
    before, asked = os.sched_getaffinity(0), list[set[int]]()

    def ours(case: Any, database: str, redis_url: str) -> Iterator[dict[str, Any]]:
        asked.append(os.sched_getaffinity(0))
        yield row(explorer.UNREDUCED, next(answers))

    def peer(case: Any, database: str, redis_url: str) -> dict[str, Any]:
        return row(PEER, next(given[database]))

    places = {explorer_rounds.ANY: ("any", ""), explorer_rounds.ONE: ("one", "")}
    own, theirs = explorer_rounds.in_turns(CASES["no lock"], 3, places, ours, peer)
    assert own["per_s"] == {"min": 60, "median": 60, "max": 60}
    assert (theirs["place"], theirs["schedules_per_s"]) == (explorer_rounds.ONE, 20)
    assert theirs["ratio"] == {"min": 2, "median": 3, "max": 6}
    assert {len(cores) for cores in asked} == {1}, "as a lane of explore"
    assert os.sched_getaffinity(0) == before


def test_a_peer_without_a_verdict_is_asked_once_and_not_compared() -> None:
    asked: list[str] = []

    def peer(case: Any, database: str, redis_url: str) -> dict[str, Any]:
        asked.append(database)
        word = "inconclusive" if database == "any" else "kept"
        return row(PEER, 10, word)

    def ours(case: Any, *urls: str) -> Iterator[dict[str, Any]]:
        yield row(explorer.UNREDUCED, 60)

    places = {explorer_rounds.ANY: ("any", ""), explorer_rounds.ONE: ("one", "")}
    _, theirs = explorer_rounds.in_turns(CASES["no lock"], 3, places, ours, peer)
    assert asked == ["any", "one", "one", "one"]
    assert (theirs["verdict"], theirs["ratio"]["median"]) == ("kept", 6)
    places = {explorer_rounds.ONE: ("any", "")}
    _, theirs = explorer_rounds.in_turns(CASES["no lock"], 3, places, ours, peer)
    assert theirs["verdict"] == "inconclusive"
    assert "ratio" not in theirs


def test_of_several_rounds_the_worst_is_shown() -> None:
    """Once wrong is wrong; the one in the middle has the figures; one without any is the answer."""
    rounds = [row(PEER, 3, "kept", ""), row(PEER, 1, "lost", "10 of 10"), row(PEER, 2, "lost", "9 of 10")]
    one = explorer_rounds.of_rounds(rounds[1:])
    assert (one["verdict"], one["right"], one["replayed"]) == ("lost", False, "9 of 10")
    assert explorer_rounds.of_rounds([*rounds[1:], row(PEER, 5, "lost", "hangs")])["replayed"] == "hangs"
    both = explorer_rounds.of_rounds(rounds)
    assert (both["verdict"], both["right"], both["schedules"]) == ("kept or lost", False, 2)
    assert both["per_s"] == {"min": 1, "median": 2, "max": 3}
    silent = {"strategy": PEER, "case": "a", "verdict": "inconclusive", "reason": "no answer within 18 s"}
    assert explorer_rounds.of_rounds([*rounds, silent]) == silent


def test_the_goal_is_the_median_of_the_cases_that_the_peer_judged() -> None:
    rows = [row(PEER, 20, case="a") | {"ratio": {"min": 1, "median": 3, "max": 9}}]
    rows += [row(PEER, 10, case="b") | {"ratio": {"min": 1, "median": 6, "max": 9}}]
    rows += [row(PEER, 0.4, "inconclusive", case="c")]
    goals = {goal["name"]: goal for goal in explorer_goals.judge(rows)}
    ratio = next(goal for name, goal in goals.items() if PEER in name)
    assert (ratio["measured"], ratio["state"]) == (4.5, "missed"), "the median of 3 and 6"
    left_out = [goal for goal in goals.values() if goal["measured"] is None]
    assert len(left_out) == 3
    assert all(goal["reason"] and not goal["met"] for goal in left_out)


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_bench_explorer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = PARTS["explorer"]
    tiny = explorer.ExplorerPlan(
        cases=("no lock",), large=("no lock",), rounds=2, peer=1.0, ledger=30.0, cores=5.0, install=False
    )
    monkeypatch.setitem(PARTS, "explorer", replace(part, plans=(tiny, tiny)))
    call_command("bench", "explorer", "--quick", "--output", str(tmp_path))
    report = json.loads((tmp_path / "bench.json").read_text())
    rows = {row["strategy"]: row for row in report["results"]}
    assert set(rows) == {explorer.USUAL, explorer.UNREDUCED, explorer.LEDGER, PEER, *explorer_cores.HOW}
    assert rows[explorer.LEDGER]["schedules"] >= rows[explorer.LEDGER]["played"] >= 0
    assert len(report["goals"]) == 4
    assert rows[explorer_cores.REAL_CORES]["of_plain"] > 0
    assert "Goals, in this run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("who", "overlap"), [("AB", True), ("BA", True), ("AABB", False), ("ABAB", True), ("AAB", False)]
)
def test_what_counts_as_overlapping(who: str, overlap: bool) -> None:
    """Operations of one command each overlap at the server's gate; of longer ones, one has to come between."""
    steps = tuple(Transition(Kind.STEP, name) for name in who)
    assert Found(Judgement(UNBROKEN), (), (), steps, ()).overlaps(2) is overlap
