"""`manage.py faults` on its own servers: each hazard fires, and what must lose, loses."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import CommandError, call_command

from ledger.addresses import BASE_DIR
from ledger.strategies import CARD
from loadtest.faults.cell import Cell
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.matrix import MatrixPlan, matrix
from loadtest.faults.scene.site import private_servers
from loadtest.verdict.words import STOPPED
from tests.contracts import CONTRACTS, lost

#: hazard → strategy → what must come out: controls that must fail, and what must not
CELLS = {
    "crash-holding": {"setnx": "stalled", "select-for-update": "kept"},
    "pause": {"token": "lost", "setnx": "kept", "select-for-update": "kept"},
    "overrun": {"setnx-ttl": "lost", "watchdog": "kept"},
    "release-foreign": {
        "setnx": "lost",
        "token": "kept",
        "select-for-update": "not-run",
        "tests.loadtest.third_party:of_a_generator": "not-run",
    },
    "renewal-dies": {"watchdog": "lost", "token": "not-run"},
    "worker-dies-renewal-lives": {"watchdog": "stalled"},
    "waiter-interrupted": {"setnx-ttl": "lost", "token": "kept"},
    "server-restart": {"token": "lost", "durable": "not-run"},
    "server-restart-everysec": {"token": "lost"},
    "server-restart-always": {"token": "kept"},
    "failover": {"token": "lost", "replicated": "kept"},
    "failover-release": {"setnx": "stalled", "token": "kept"},
    "partition": {
        "watchdog": "lost",
        "token": "kept",
        "redlock": "kept",
        "select-for-update": "kept",
        "insert-lock": "kept",
        "file-lock": "kept",
    },
    "partition-one-way": {"watchdog": "lost", "token": "kept", "centre-lock": "kept"},
    "slow-network": {"token": "kept", "lock-table": "kept"},
    "zookeeper-session-expiry": {"zookeeper": "lost", "zookeeper-fenced": "kept", "token": "not-run"},
    "lost-reply": {"setnx": "stalled", "token": "kept", "watchdog-lua": "stalled"},
    "eviction": {"token": "lost"},
    "split-brain": {"token": "lost", "fenced": "kept", "replicated": "refused"},
    "clock-jump": {"token": "lost", "setnx": "kept"},
    "clock-jump-back": {"token": "kept"},
    "clock-jump-client": {"timestamp": "lost", "token": "kept"},
    "clock-jump-client-back": {"timestamp": "lost", "token": "kept"},
    "lost-reply-retried": {"setnx": "stalled", "token": "kept", "reentrant": "stalled"},
    "replica-lag": {"token": "lost", "optimistic-version": "kept", "select-for-update": "not-run"},
    "deadlock": {"select-for-update": "kept", "optimistic-version": "not-run", "advisory-lock": "not-run"},
    "worker-crash": {"setnx": "stalled", "select-for-update": "kept"},
    "connection-exhaustion": {"token": "kept", "select-for-update": "kept"},
    "stampede": {"token": "kept", "select-for-update": "kept"},  # by the same threads
    "transaction-pooler": {
        "advisory-lock-session": "lost",
        "advisory-lock": "kept",
        "atomic-update": "kept",  # it prepares its statement where there is no pooler
        "select-for-update": "kept",
    },
    "database-session-killed": {"select-for-update": "kept"},
    "database-restart": {"select-for-update": "kept"},
}


#: of several cells that show the same of a hazard, those that `make test` leaves to `make test-deep`
MORE = {
    ("crash-holding", "select-for-update"),
    ("failover", "replicated"),
    ("pause", "setnx"),
    ("pause", "select-for-update"),
    ("overrun", "watchdog"),
    ("release-foreign", "token"),
    ("waiter-interrupted", "token"),
    ("failover-release", "token"),
    ("partition", "token"),
    ("partition", "redlock"),
    ("partition", "select-for-update"),
    ("partition", "insert-lock"),
    ("partition", "file-lock"),
    ("partition-one-way", "token"),
    ("partition-one-way", "centre-lock"),
    ("slow-network", "lock-table"),
    ("zookeeper-session-expiry", "zookeeper-fenced"),
    ("lost-reply", "token"),
    ("lost-reply", "watchdog-lua"),
    ("split-brain", "fenced"),
    ("split-brain", "replicated"),
    ("clock-jump", "setnx"),
    ("clock-jump-client", "token"),
    ("clock-jump-client-back", "token"),
    ("lost-reply-retried", "token"),
    ("lost-reply-retried", "reentrant"),
    ("replica-lag", "optimistic-version"),
    ("worker-crash", "select-for-update"),
    ("connection-exhaustion", "select-for-update"),
    ("stampede", "select-for-update"),
    ("transaction-pooler", "advisory-lock"),
    ("transaction-pooler", "atomic-update"),
    ("transaction-pooler", "select-for-update"),
}
WORDS = [
    pytest.param(hazard, slug, word, marks=[pytest.mark.deep] if (hazard, slug) in MORE else [])
    for hazard, words in CELLS.items()
    for slug, word in words.items()
]


@dataclass(frozen=True)
class Few(MatrixPlan):
    """Only the cells of the tests that were selected, and their controls."""

    wanted: frozenset[tuple[str, str]] = frozenset()

    def cells(self) -> list[Cell]:
        hazards = dict.fromkeys(hazard for hazard in CELLS if any(hazard == each for each, _ in self.wanted))
        return [
            Cell(strategy, ADVERSARIES[hazard], self.seed)
            for hazard in hazards
            for strategy in ("no-lock", *CELLS[hazard])
            if strategy == "no-lock" or (hazard, strategy) in self.wanted
        ]


def start(output: Path, *options: str) -> "subprocess.Popen[str]":
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "REDIS_URL", "REDIS_NODES", "LAB_DIR")
    }
    command = [sys.executable, "manage.py", "faults", "--seed", "7", "--output", str(output), *options]
    return subprocess.Popen(
        command, cwd=BASE_DIR, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.fixture(scope="module")
def cells(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any
) -> dict[tuple[str, str], dict[str, Any]]:
    wanted = set()
    for item in request.session.items:
        if getattr(item, "originalname", "") == test_what_comes_out.__name__:
            wanted.add((item.callspec.params["hazard"], item.callspec.params["strategy"]))
        elif getattr(item, "originalname", "") == test_the_pause_is_drawn_into_the_loss.__name__:
            wanted.add(("pause", "token"))
    plan = Few(strategies=(), hazards=(), seed=7, wanted=frozenset(wanted))
    with django_db_blocker.unblock(), private_servers(*plan.servers()) as site:
        return {(each["hazard"], each["strategy"]): each for each in matrix(plan, site)}


@pytest.mark.timeout(900)
def test_each_cell_has_the_fields_that_were_promised(cells: dict[tuple[str, str], dict[str, Any]]) -> None:
    about = {path.partition(".")[0] for path in CONTRACTS["fields"]["faults.json"]}
    assert lost("faults.json", {**dict.fromkeys(about), "results": list(cells.values())}) == []


def test_every_hazard_has_a_case() -> None:
    assert set(CELLS) == set(ADVERSARIES)
    for hazard, words in CELLS.items():
        assert any((hazard, slug) not in MORE and word != "not-run" for slug, word in words.items())
        assert {slug for each, slug in MORE if each == hazard} <= words.keys()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("hazard", "strategy", "word"), WORDS)
def test_what_comes_out(
    cells: dict[tuple[str, str], dict[str, Any]], hazard: str, strategy: str, word: str
) -> None:
    cell = cells[hazard, strategy]
    assert cell["verdict"] == word, cell.get("cause") or cell
    if word == "not-run":
        assert cell["reason"]
    else:
        assert cell["fired"][cell["word"]]
        assert [step for step in cell["timeline"] if step["kind"] == "fault"]
    option = "--lock" if ":" in strategy else "--strategy"
    assert cell["command"].endswith(f"--hazard {hazard} {option} {strategy}")
    assert cell["agrees"] is not False


@pytest.mark.timeout(900)
def test_the_pause_is_drawn_into_the_loss(cells: dict[tuple[str, str], dict[str, Any]]) -> None:
    """The victim had read; it was stopped, overtaken and continued; then it wrote over what it had not seen."""
    cell = cells["pause", "token"]
    loss = cell[cell["shown_loss"]]
    victim = loss["overwritten_by"]["worker"]
    told = [step["what"] for step in cell["timeline"] if step["kind"] != "note"]
    wanted = [f"{victim} reads", "SIGSTOP", f"{loss['lost']['worker']} writes", "SIGCONT", f"{victim} writes"]
    places = [next(n for n, what in enumerate(told) if what.startswith(each)) for each in wanted]
    assert places == sorted(places)


@pytest.mark.whole_command
@pytest.mark.timeout(900)
def test_two_runs_side_by_side(tmp_path: Path) -> None:
    options = ("--strategy=setnx", "--hazard=pause")
    runs = [(start(tmp_path / name, *options), tmp_path / name) for name in ("one", "two")]
    for process, output in runs:
        told, _ = process.communicate(timeout=800)
        assert process.returncode == 0, told
        report = json.loads((output / "faults.json").read_text())
        assert lost("faults.json", report) == []
        results = report["results"]
        assert [each["verdict"] for each in results] == ["lost", "kept"]


@pytest.mark.whole_command
@pytest.mark.timeout(900)
def test_a_third_party_lock_has_the_lease_that_it_asked_the_server_for(tmp_path: Path) -> None:
    """10 s after its holder's death it is granted again: a standstill that ended by itself."""
    process = start(tmp_path, "--lock=tests.loadtest.third_party:right", "--hazard=crash-holding")
    told, _ = process.communicate(timeout=800)
    _, cell = json.loads((tmp_path / "faults.json").read_text())["results"]
    assert cell["verdict"] == "kept", told
    assert cell["stalled_s"] > 5
    assert cell["recovered"]


@pytest.mark.whole_command
@pytest.mark.timeout(900)
def test_ctrl_c_leaves_nothing_and_keeps_what_was_measured(tmp_path: Path) -> None:
    hazards = ("crash-holding", "pause", "overrun")  # more cells than run at once
    process = start(tmp_path, "--quick", *(f"--hazard={each}" for each in hazards))
    assert process.stdout
    for line in process.stdout:
        if "no-lock" in line:
            break
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=280)
    assert process.returncode == 130, told
    report = json.loads((tmp_path / "faults.json").read_text())
    assert report["stopped"]
    assert len(report["results"]) == len(hazards) * len(CARD)
    left = {each["strategy"] for each in report["results"] if each.get("reason") == STOPPED}
    assert left
    assert "Stopped: not run: " in told
    assert "– stopped before" in told
    for name in ("faults.json", "index.html"):
        assert f"Written: {tmp_path / name}" in told
    assert "was stopped before its end" in (tmp_path / "index.html").read_text()
    _, left = psutil.wait_procs(family, timeout=60)
    assert not left


def test_a_hazard_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="crash-holding") as raised:
        call_command("faults", hazard=["meteor"], output=tmp_path)
    assert raised.value.returncode == 2
