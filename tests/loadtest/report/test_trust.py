"""`manage.py trust`: the card of one lock, and the three commands behind it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import CommandError, call_command

from ledger.addresses import BASE_DIR
from loadtest.report.card import SIGNS, Card, card, sentences
from loadtest.report.command_line import of_report

LOCK = "mylocks:mine"
#: lets everybody in
DOOR = "mylocks:door"


def reports(
    explored: dict[str, str],
    done: dict[str, str],
    *,
    swarm: str = "kept",
    claims: tuple[str, ...] = ("contention",),
) -> dict[str, Any]:
    """What the three commands would have written of LOCK: {hazard: word}."""
    cells = [
        {"strategy": LOCK, "hazard": hazard, "verdict": word, "claimed": hazard in claims}
        for hazard, word in done.items()
    ]
    search = {"strategy": LOCK, "under": explored, "claims": claims, "schedules": 1234, "exhausted": True}
    posts = {
        "strategy": LOCK,
        "verdict": swarm,
        "claimed": True,
        "ops_per_s": 60.4,
        "latency_ms": {"p99": 1034.2},
    }
    return {
        "compare": {"command": "compare", "results": [posts]},
        "explore": {"command": "explore", "results": [{**search, "counterexample": None}]},
        "faults": {"command": "faults", "results": cells},
    }


def of(explored: dict[str, str], done: dict[str, str], **more: Any) -> Card:
    return card(LOCK, reports(explored, done, **more))


def test_what_loses_under_a_hazard_is_not_to_be_trusted_alone() -> None:
    found = of(
        {"contention": "kept", "pause": "lost"}, {"pause": "kept", "failover": "lost", "eviction": "kept"}
    )
    assert found.losing == ["pause", "failover"]
    assert found.answer() == [
        "Not alone. It loses money under pause and failover. "
        "Let the store have the last word: docs/choosing.md says how."
    ]


def test_the_signs_of_the_table_are_explained() -> None:
    assert next(sentences(of({"contention": "kept"}, {"pause": "kept"}))) == SIGNS


@pytest.mark.parametrize("word", ["lost", "created", "oversold"])
@pytest.mark.parametrize("court", ["swarm", "explore"])
def test_what_loses_without_a_fault_is_no_lock(word: str, court: str) -> None:
    found = of(
        {"contention": word if court == "explore" else "kept"},
        {"pause": "kept"},
        swarm=word if court == "swarm" else "kept",
    )
    assert found.answer()[0].startswith("No. Two concurrent callers are enough")


def test_nothing_lost_comes_with_what_was_tried() -> None:
    found = of({"contention": "kept"}, {"pause": "kept", "failover": "not-run"})
    assert found.answer() == [
        "It lost no money in 1,234 schedules, all that exist within the bounds, and 2 hazards."
    ]
    assert [row.hazard for row in found.rows] == ["contention", "pause"], "what cannot touch it is no row"


def test_a_doubt_of_one_court_is_not_hidden_by_the_other() -> None:
    found = of({"contention": "kept", "pause": "inconclusive"}, {"pause": "kept"})
    assert found.under("inconclusive") == ["pause"]
    assert found.answer()[1].startswith("Undecided: pause.")
    nothing = of({"contention": "inconclusive"}, {"pause": "not-run"}, swarm="inconclusive")
    assert nothing.answer()[0] == "Unknown: nothing was decided."


def test_a_missing_verdict_of_the_explorer_has_its_reason() -> None:
    known = reports({}, {"pause": "kept"})
    [search] = known["explore"]["results"]
    for why in ("cause", "reason"):
        known["explore"]["results"] = [{**search, "verdict": "inconclusive", why: "it waits in a file"}]
        assert card(LOCK, known).answer()[-1] == "The explorer decided nothing: it waits in a file."


def test_standing_still_though_nothing_fails_comes_first() -> None:
    """As a lock does whose release has a fault; its lease ends under a pause all the same."""
    found = of({"contention": "inconclusive", "pause": "lost"}, {"crash-holding": "stalled"}, swarm="stalled")
    assert found.answer() == [
        "No. It stalls without any fault: does each holder release it? And it loses money under pause.",
        "It claims to withstand contention, and does not.",
    ]


def test_a_schedule_that_was_not_reproduced_is_shown_as_it_was_found() -> None:
    """It has no states: what the servers held was never looked at."""
    known = reports({"contention": "kept", "pause": "lost"}, {"pause": "kept"})
    step = {"task": "A", "worker": "A", "command": "SET x", "reply": "OK", "kind": "", "at": 0, "state": None}
    told = ["A sends SET x and hears OK", "20 lost"]
    known["explore"]["results"][0]["counterexample"] = {
        "id": "", "verdict": "lost", "opening": None, "steps": [step], "sentences": told,
    }  # fmt: skip
    assert card(LOCK, known).as_json()["schedule"] == told


def test_a_stall_and_a_broken_claim_are_reported() -> None:
    found = of({"contention": "kept"}, {"crash-holding": "stalled"}, claims=("contention", "crash-holding"))
    assert found.answer()[1:] == [
        "It stalls or refuses under crash-holding: no money is lost, but none can be moved.",
        "It claims to withstand crash-holding, and does not.",
    ]


def test_a_court_that_has_nothing_on_it_is_no_acquittal() -> None:
    known = reports({"contention": "kept"}, {"pause": "kept"})
    known["faults"]["results"] = []
    with pytest.raises(ValueError, match="faults has no result for mylocks:mine"):
        card(LOCK, known)


def test_without_a_lock_it_says_what_to_name() -> None:
    with pytest.raises(CommandError, match="which lock") as raised:
        call_command("trust")
    assert raised.value.returncode == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [({"hazard": ["pauze"]}, "did you mean pause"), ({"gate": ["nobody:gate"]}, "No module named 'nobody'")],
)
def test_what_a_later_court_would_refuse_is_refused_at_once(
    options: dict[str, list[str]], told: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match=told) as raised:
        call_command("trust", strategy=["setnx"], output=folder, seconds=0.2, **options)
    assert raised.value.returncode == 2
    assert "no-lock" not in capfd.readouterr().err, "the swarm had begun"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, for the sockets in it."""
    made = Path(tempfile.mkdtemp(prefix="lab-trust-"))
    (made / "mylocks.py").write_text(
        "mine = lambda name, redis: redis.lock(name, timeout=5)\n"
        "from contextlib import nullcontext as door\n"
        "def none(name):\n    raise RuntimeError('boom')\n"
    )
    yield made
    shutil.rmtree(made)


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    given = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    return subprocess.Popen(
        [sys.executable, str(BASE_DIR / "manage.py"), "trust", "--output", str(folder), *words],
        cwd=folder,
        env={**given, "LAB_DIR": str(folder / "lab")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.whole_command
@pytest.mark.timeout(400)
def test_two_locks_before_all_three(folder: Path) -> None:
    words = ("--lock", LOCK, "--lock", DOOR, "--hazard", "pause", "--hazard", "crash-holding")
    done = start(folder, *words, "--seconds", "1", "--budget", "5")
    said, told = done.communicate(timeout=390)
    assert done.returncode == 1, told  # the door claims what every lock claims
    assert f"Can I trust {LOCK} with money?" in said
    assert "Not alone. It loses money under pause" in said
    assert "No. Two concurrent callers are enough" in said
    # by the Python and the path that work where the user stands (loadtest/commandline/again.py)
    assert re.search(
        rf"again: .*python\S* \S*manage\.py explore --replay {re.escape(DOOR)}/l/", said, re.MULTILINE
    )
    report = json.loads((folder / "trust.json").read_text())
    results = {each["strategy"]: each for each in report["results"]}
    assert "contention" in results[DOOR]["loses_under"]
    assert results[DOOR]["replay"].startswith(f"{DOOR}/l/")
    assert results[DOOR]["schedule"][0] == "A reads 100."
    assert "1. A reads 100." in said
    rows = {row["hazard"]: row for row in results[LOCK]["rows"]}
    assert rows["pause"]["done"] == "lost"
    assert rows["contention"]["done"] == "kept"
    again = shlex.join(
        ["python", "manage.py", "trust", *words[:4], "--seconds", "1", "--budget", "5", *words[4:]]
    )
    assert of_report(report, "trust") == again
    page = (folder / "index.html").read_text()
    assert f"Can I trust <code>{DOOR}</code> with money?" in page
    assert again in page


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_refusal_by_one_of_them_is_reported_once(folder: Path) -> None:
    done = start(folder, "--lock", "mylocks:none")
    _, told = done.communicate(timeout=290)
    assert done.returncode == 2
    assert "boom" in told
    assert "Traceback" not in told
    assert not (folder / "trust.json").exists()


@pytest.mark.whole_command
@pytest.mark.timeout(300)
def test_ctrl_c_ends_all_of_it(folder: Path) -> None:
    done = start(folder, "--lock", LOCK, "--hazard", "pause")
    assert done.stderr
    for line in done.stderr:
        if "no-lock: " in line:  # the swarm has been there
            break
    family = psutil.Process(done.pid).children(recursive=True)
    assert family
    done.send_signal(signal.SIGINT)
    _, told = done.communicate(timeout=200)
    assert done.returncode == 130, told
    assert "stopped" in told
    assert not psutil.wait_procs(family, timeout=30)[1]
