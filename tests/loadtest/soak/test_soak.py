"""A short soak, whole: real servers, real kills, five strategies, two controls that must be caught."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.addresses import BASE_DIR
from loadtest.soak.plan import BACKGROUND, KINDS, SOAKED_STRATEGIES

GIVEN = ("DATABASE_URL", "REDIS_URL", "REDIS_NODES", "LAB_DIR")


@pytest.mark.whole_command
@pytest.mark.timeout(900)
def test_nothing_is_lost_and_nothing_twice_while_everything_is_killed(tmp_path: Path) -> None:
    asked = {"postings": 300, "strikes": 13, "imports": 1, "lines": 20, "drop": 20, "seed": 3}
    words = [*(f"--{name}={value}" for name, value in asked.items()), "--output"]
    done = subprocess.run(
        [sys.executable, "-m", "loadtest.soak", *words, str(tmp_path)],
        cwd=BASE_DIR,
        env={name: value for name, value in os.environ.items() if name not in GIVEN},
        capture_output=True,
        text=True,
        timeout=880,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "soak.json").read_text())
    assert report["environment"]["cores"]
    strikes = report["options"]["strikes"]
    assert {each["kind"] for each in strikes} == set(KINDS)
    assert all(each["gone"] for each in strikes)
    struck = [each["held"] for each in strikes if each["kind"] == BACKGROUND]
    lossy, careless, *kept = report["results"]
    assert (lossy["strategy"], lossy["verdict"]) == ("no-lock", "lost")
    assert (careless["verdict"], careless["client"]) == ("created", "takes a new key for each try")
    assert {each["strategy"]: each["verdict"] for each in kept} == dict.fromkeys(SOAKED_STRATEGIES, "kept")
    for each in kept:
        _whole(each)
        assert any(each["book"] in held for held in struck)
        assert "lines held" in each["fired"]["worker-crash"]


def _whole(each: dict[str, Any]) -> None:
    """Every import ended, and each reply that was lost came again as a replay."""
    assert each["imports"]["finished"] == each["imports"]["files"] >= 1
    assert each["replayed"] >= each["replies_lost"] > 0
    assert each["lost_amount"] == each["created_amount"] == 0
