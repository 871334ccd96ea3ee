"""`manage.py bench` and `make bench`: what every part has in common, and what is kept of a run that ends early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ledger.addresses import BASE_DIR
from ledger.models import Book
from loadtest.bench import lock_tables, strategies
from loadtest.bench.__main__ import gravest
from loadtest.bench.children import ChildFailed
from loadtest.bench.measured import Measured, failed, not_run
from loadtest.bench.neighbours import Neighbours
from loadtest.bench.parts import PARTS
from tests.contracts import lost

Run = Callable[[Any, Measured, Callable[[str], None]], None]


def bench(folder: Path, *words: str) -> dict[str, Any]:
    call_command("bench", *words, "--output", str(folder))
    found: dict[str, Any] = json.loads((folder / "bench.json").read_text())
    return found


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Run], None]:
    """`running(part, run)`: that part measures so."""

    def put(part: str, run: Run) -> None:
        monkeypatch.setitem(PARTS, part, replace(PARTS[part], run=run))

    return put


@pytest.mark.parametrize("part", PARTS)
def test_every_part_writes_bench_json(
    tmp_path: Path, part: str, running: Callable[[str, Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    running(part, lambda plan, found, told: found.notes.append("done"))
    written = bench(tmp_path, part, "--quick", "--json")
    assert json.loads(capsys.readouterr().out) == written
    assert written["notes"] == {part: ["done"]}
    assert lost("bench.json", written) == []


def test_a_number_of_rounds(tmp_path: Path, running: Callable[[str, Run], None]) -> None:
    running("locks", lambda plan, found, told: found.notes.append(f"{plan.rounds} rounds"))
    assert bench(tmp_path, "locks", "--rounds", "2")["notes"]["locks"] == ["2 rounds"]
    with pytest.raises(CommandError, match="from 1 to 1,000"):
        bench(tmp_path, "locks", "--rounds", "0")


def test_a_busy_machine_is_reported_where_there_are_no_goals(
    tmp_path: Path, running: Callable[[str, Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def run(plan: Any, found: Measured, told: Callable[[str], None]) -> None:
        others = Neighbours()
        others.cpus = 1.0
        found.warning = others.warning("before")

    running("lock-tables", run)
    bench(tmp_path, "lock-tables", "--quick")
    out = capsys.readouterr().out
    assert "Goals, in this run" not in out
    assert "The figures are unreliable: run it again on an idle machine." in out


@pytest.mark.parametrize(
    ("error", "ended"), [(ChildFailed("gone"), CommandError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_what_was_measured_before_a_run_ended_early_is_kept(
    tmp_path: Path, running: Callable[[str, Run], None], error: BaseException, ended: type[BaseException]
) -> None:
    def run(plan: Any, found: Measured, told: Callable[[str], None]) -> None:
        found.results.append(
            {"measure": "limit", "strategy": "a", "pinned": True, "verdict": "not-run", "reason": "x"}
        )
        raise error

    running("locks", run)
    with pytest.raises(ended):
        bench(tmp_path, "locks")
    written = json.loads((tmp_path / "bench.json").read_text())
    assert [row["strategy"] for row in written["results"]] == ["a"]
    assert "ended early" in written["notes"]["locks"][0]


def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path: Path, running: Callable[[str, Run], None]) -> None:
    """What it has measured is kept, and its servers end."""

    def run(plan: Any, found: Measured, told: Callable[[str], None]) -> None:
        found.results.append({"measure": "limit", "strategy": "a", "pinned": True, **not_run("x")})
        os.kill(os.getpid(), signal.SIGTERM)

    def die(*_: Any) -> None:
        raise SystemExit("as a program dies that hears nothing of it")

    running("locks", run)
    before = signal.signal(signal.SIGTERM, die)
    try:
        with pytest.raises(KeyboardInterrupt):
            bench(tmp_path, "locks")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (tmp_path / "bench.json").exists()


def test_a_run_that_measured_nothing_leaves_the_last_one(
    tmp_path: Path, running: Callable[[str, Run], None]
) -> None:
    def run(plan: Any, found: Measured, told: Callable[[str], None]) -> None:
        raise ChildFailed("gone")

    running("locks", run)
    with pytest.raises(CommandError, match="gone"):
        bench(tmp_path, "locks")
    assert not (tmp_path / "bench.json").exists()


@pytest.mark.parametrize(
    ("told", "code"),
    [({"per_s": 1.0, "right": False}, 1), (failed("gone"), 3), (not_run("not installed"), 0)],
)
def test_how_the_command_ends(
    tmp_path: Path, running: Callable[[str, Run], None], told: dict[str, Any], code: int
) -> None:
    """One loses money, one failed, one was not there."""
    row = {"measure": "growth", "along": "callers", "strategy": "a", "accounts": 1, "callers": 1, **told}
    running("strategies", lambda plan, found, told: found.results.append(row))
    ended = 0
    try:
        bench(tmp_path, "strategies")
    except SystemExit as error:
        ended = int(error.code or 0)
    assert ended == code


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("setting", ["off", "local"])
def test_whether_commits_are_durable_is_asked_of_the_server(setting: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = %s", [setting])
    try:
        said = strategies.commits()
    finally:
        connection.close()
    assert ("NOT durable" in said) == (setting == "off" or "fsync = off" in said)


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_a_contender_of_the_lock_tables_that_fails_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_tables, "ALIASES", {"postgres": "default"})
    monkeypatch.delitem(lock_tables.LOCK_TABLES, "centre-lock")
    found = Measured()
    lock_tables.run(lock_tables.LockTablesPlan(rounds=1, seconds=0.05), found)
    its = [row for row in found.results if row["strategy"] == "centre-lock"]
    assert {row["reason"] for row in its} == {"KeyError: 'centre-lock'"}
    assert all(row["per_s"] and "ratio" not in row for row in found.results if row not in its)


@pytest.mark.parametrize(("codes", "code"), [([0, 0], 0), ([0, 3], 3), ([3, 1], 1), ([2, 3], 2)])
def test_make_bench_ends_with_the_gravest_code(codes: list[int], code: int) -> None:
    assert gravest(codes) == code


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_make_bench_leaves_the_ledger_that_runs_alone(tmp_path: Path) -> None:
    books = set(Book.objects.values_list("pk", flat=True))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "loadtest.bench",
            "strategies",
            "--quick",
            "--part",
            "import",
            "--output",
            str(tmp_path),
        ],
        cwd=BASE_DIR,
        env={**os.environ, "DATABASE_URL": os.environ["DATABASE_URL"]},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "bench.json").read_text())["results"]
    assert all(row["right"] for row in rows)
    assert set(Book.objects.values_list("pk", flat=True)) == books
