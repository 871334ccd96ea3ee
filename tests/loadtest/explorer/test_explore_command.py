"""`manage.py explore` on the real strategies: the matrix, explore.json, and a replay that needs no file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ledger.addresses import BASE_DIR
from loadtest.findings.job import Job
from loadtest.management.commands.explore import Command, _jobs
from loadtest.verdict.words import STOPPED
from lost_update_lab.embedded import mariadb
from tests.contracts import lost

DOCS = BASE_DIR / "docs" / "explorer.md"


def explore(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "explore", *arguments],
        cwd=BASE_DIR,
        env={**os.environ, "PYTHONPATH": str(path or "")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def explored(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """naive-lock, atomic-update and the lock of docs/explorer.md with their control, without a fault."""
    folder = tmp_path_factory.mktemp("explored")
    [code] = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (folder / "mylocks.py").write_text(code)
    done = explore(
        "--strategy", "naive-lock", "--strategy", "atomic-update", "--strategy", "in-process",
        "--lock", "mylocks:lock", "--gate", "mylocks:gate",
        "--faults", "0", "--lanes", "1", "--output", str(folder), path=folder,
    )  # fmt: skip
    return done, {**json.loads(Path(folder, "explore.json").read_text()), "folder": folder}


@pytest.mark.whole_command
def test_the_file_says_what_was_found(explored: Any) -> None:
    done, report = explored
    assert lost("explore.json", report) == []
    results = {each["strategy"]: each for each in report["results"]}
    assert list(results) == ["no-lock", "naive-lock", "atomic-update", "in-process", "mylocks:lock"]
    assert [each["verdict"] for each in results.values()] == ["lost", "lost", "kept", "not-run", "kept"]
    assert [each["exhausted"] for each in results.values()] == [True, True, True, False, True]
    assert "mylocks:lock: kept" in done.stderr  # and no picture of a padlock
    assert results["in-process"]["schedules"] == 0
    assert results["in-process"]["reason"]
    assert "naive-lock" in done.stdout
    assert done.returncode == 0
    index = Path(report["folder"], "index.html")
    assert f"Written: {index}" in done.stdout
    [page] = index.parent.glob("explore/naive-lock-*.html")
    assert f'href="explore/{page.name}"' in index.read_text()
    assert "balance A0001" in page.read_text()


@pytest.mark.whole_command
def test_each_run_begins_as_a_new_process_would(tmp_path: Path) -> None:
    """What a process keeps is carried neither from run to run nor from worker to worker: the pool of django-redis, the
    number of Django's next savepoint. And a replica that reports its offset is no bypassing client."""
    kept = ["django-redis", "replicated", "check-then-decrement"]
    asked = [f"--strategy={slug}" for slug in (*kept, "lock-inside-transaction")]
    done = explore(*asked, "--faults", "0", "--output", str(tmp_path))
    results = {
        each["strategy"]: each for each in json.loads((tmp_path / "explore.json").read_text())["results"]
    }
    assert [each["cut_short"] for each in results.values()] == [""] * 5
    assert {slug: results[slug]["verdict"] for slug in kept} == dict.fromkeys(kept, "kept")
    assert results["lock-inside-transaction"]["verdict"] == "lost"
    assert done.returncode == 0


@pytest.mark.whole_command
@pytest.mark.usefixtures("committed_db")
def test_a_counterexample_is_printed_and_replayed(explored: Any) -> None:
    _, report = explored
    example = next(r for r in report["results"] if r["strategy"] == "naive-lock")["counterexample"]
    assert example["confirmed"] == 10
    assert {"worker", "command", "reply"} <= example["steps"][0].keys()
    assert any(
        "SET A0001" in sentence and "over the one that" in sentence for sentence in example["sentences"]
    )
    again = explore("--replay", example["id"])
    assert again.returncode == 0, again.stderr
    assert example["opening"] is not None
    assert all(step["state"] is not None for step in example["steps"])
    assert again.stdout.split()[-1] == "lost"
    with pytest.raises(SystemExit) as ended:
        call_command("explore", replay=example["id"].replace("/l", "/s"))
    assert ended.value.code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--strategy", "nobody"),
        ("--workers", "0"),
        ("--faults", "9"),
        ("--replay", "nonsense"),
        ("--lock", "x"),
        ("--gate", "nobody:gate"),
    ],
)
def test_bad_usage_says_what_to_do(
    arguments: tuple[str, ...], committed_db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "explore", *arguments])
    assert ended.value.code == 2
    assert arguments[-1].partition(":")[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    "job",
    [
        Job(strategy="token"),
        Job(strategy="my.module:lock", workers=3, faults=2, work=60_000, slack=50),
        Job(strategy="atomic-update", workload="transfers", faults=0),
    ],
)
def test_an_id_holds_subject_bounds_and_schedule(job: Job) -> None:
    again = Job.of_replay_id(job.replay_id("lost", (0, 0, 3, 0, 1)))
    assert again == Job(**{**vars_of(job), "choices": (0, 0, 3, 0, 1), "expected": "lost"})


def vars_of(job: Job) -> dict[str, Any]:
    return {"strategy": job.strategy, **job.as_json(), "gates": job.gates}


@pytest.mark.whole_command
def test_ctrl_c_keeps_what_was_explored(tmp_path: Path) -> None:
    words = "--strategy", "naive-lock", "--lanes", "1", "--output", str(tmp_path)
    with subprocess.Popen(
        [sys.executable, "manage.py", "explore", *words],
        cwd=BASE_DIR,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stderr
        assert any("no-lock: lost" in line for line in command.stderr)  # the next search takes seconds
        command.send_signal(signal.SIGINT)
        told, _ = command.communicate(timeout=200)
    assert command.returncode == 130
    report = json.loads((tmp_path / "explore.json").read_text())
    assert report["stopped"]
    assert [(each["strategy"], each["verdict"], each.get("reason")) for each in report["results"]] == [
        ("no-lock", "lost", None),
        ("naive-lock", "not-run", STOPPED),
    ]
    assert "Stopped: not run: naive-lock." in told
    assert "was stopped before its end" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("asked", "until"),
    [
        ({}, "decided"),
        ({"strategy": ["token"]}, "exhausted"),
        ({"until": "exhausted"}, "exhausted"),
        ({"strategy": ["token"], "until": "decided"}, "decided"),
    ],
)
def test_a_named_strategy_gets_every_schedule(asked: dict[str, Any], until: str) -> None:
    assert {job.until for job in _jobs(_options(**asked))} == {until}


def _options(**asked: Any) -> dict[str, Any]:
    return {**vars(Command().create_parser("manage.py", "explore").parse_args([])), **asked}


def test_a_strategy_of_mariadb_alone_is_explored_there() -> None:
    [control, job] = _jobs(_options(strategy=["repeatable-read-innodb"]))
    assert (control.strategy, control.store, job.store) == ("no-lock", "mariadb", "mariadb")
    again = Job.of_replay_id(job.replay_id("lost", (0, 7)))
    assert (again.where, again.choices) == ("mariadb", (0, 7))


def test_all_strategies_of_a_store_are_explored_there() -> None:
    found = [job.strategy for job in _jobs(_options(store="mariadb"))]
    assert found[0] == "no-lock"
    assert {"repeatable-read-innodb-snapshot", "lock-table", "token", "serializable"} <= set(found)
    assert not {"repeatable-read", "advisory-lock", "redis-atomic"} & set(found)


@pytest.mark.whole_command
def test_the_strategies_on_mariadb(tmp_path: Path) -> None:
    """Both settings of innodb_snapshot_isolation; the row lock, whose waiters give up while a holder is paused; a lock
    in Valkey, whose waiters wait for no row."""
    if reason := mariadb.available():
        pytest.skip(reason)
    names = ["repeatable-read-innodb", "repeatable-read-innodb-snapshot", "select-for-update", "setnx"]
    named = [word for name in names for word in ("--strategy", name)]
    done = explore(*named, "--store", "mariadb", "--output", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    results = {
        each["strategy"]: each for each in json.loads((tmp_path / "explore.json").read_text())["results"]
    }
    assert all(each["exhausted"] for each in results.values())
    assert {name: each["under"]["contention"] for name, each in results.items()} == {
        "no-lock": "lost",
        "repeatable-read-innodb": "lost",
        "repeatable-read-innodb-snapshot": "kept",
        "select-for-update": "kept",
        "setnx": "kept",
    }
    assert results["select-for-update"]["under"]["crash-holding"] == "kept"
    assert results["select-for-update"]["under"]["pause"] == "refused"
    assert results["setnx"]["under"]["pause"] == "kept"
    example = results["repeatable-read-innodb"]["counterexample"]
    again = explore("--replay", example["id"])
    assert (again.returncode, again.stdout.split()[-1]) == (0, "lost")
