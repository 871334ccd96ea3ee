"""`manage.py faults` on its own servers: each hazard fires, and what must lose, loses."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from ledger.addresses import BASE_DIR

#: two runs side by side → hazard → strategy → what must come out: controls that must fail, and what must not
RUNS: tuple[dict[str, dict[str, str]], ...] = (
    {
        "crash-holding": {"setnx": "stalled", "select-for-update": "kept"},
        "pause": {"token": "lost", "setnx": "kept", "select-for-update": "kept"},
        "overrun": {"setnx-ttl": "lost", "watchdog": "kept", "select-for-update": "kept"},
    },
    {
        "release-foreign": {"setnx": "lost", "token": "kept", "select-for-update": "not-run"},
        "waiter-interrupted": {"setnx-ttl": "lost", "token": "kept"},
        "renewal-dies": {"watchdog": "lost", "token": "not-run"},
        "worker-dies-renewal-lives": {"watchdog": "stalled"},
    },
)
CELLS = [
    (number, hazard, strategy, word)
    for number, run in enumerate(RUNS)
    for hazard, words in run.items()
    for strategy, word in words.items()
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
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two runs at the same time wrote."""
    runs = []
    for run in RUNS:
        output = tmp_path_factory.mktemp("faults")
        strategies = sorted({strategy for words in run.values() for strategy in words})
        options = [f"--hazard={hazard}" for hazard in run] + [f"--strategy={each}" for each in strategies]
        runs.append((start(output, *options), output))
    found = []
    for process, output in runs:
        told, _ = process.communicate(timeout=240)
        assert process.returncode in (0, 1), told
        found.append(json.loads((output / "faults.json").read_text()))
    return found


@pytest.mark.parametrize(("number", "hazard", "strategy", "word"), CELLS)
def test_what_comes_out(
    reports: list[dict[str, Any]], number: int, hazard: str, strategy: str, word: str
) -> None:
    (cell,) = [
        each
        for each in reports[number]["results"]
        if (each["hazard"], each["strategy"]) == (hazard, strategy)
    ]
    assert cell["verdict"] == word, cell
    if word == "not-run":
        assert cell["reason"]
    else:
        assert cell["fired"][hazard]
        assert cell["timeline"]
    assert cell["command"].endswith(f"--hazard {hazard} --strategy {strategy}")
    assert cell["agrees"] is not False


def test_ctrl_c_leaves_nothing_and_keeps_what_was_measured(tmp_path: Path) -> None:
    process = start(tmp_path, "--quick", "--hazard=crash-holding", "--hazard=pause")
    assert process.stdout
    for line in process.stdout:
        if "no-lock" in line:
            break
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert json.loads((tmp_path / "faults.json").read_text())["results"]
    _, left = psutil.wait_procs(family, timeout=10)
    assert not left


def test_a_hazard_that_nobody_knows(tmp_path: Path) -> None:
    process = start(tmp_path, "--hazard=meteor")
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "crash-holding" in told
