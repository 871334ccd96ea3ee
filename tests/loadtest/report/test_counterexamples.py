"""docs/counterexamples.md: it fits the code, and its schedules lose again on real servers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ledger.strategies import STRATEGIES, find
from loadtest.explorer.findings import not_run
from loadtest.explorer.job import Job
from loadtest.report.pages import counterexamples
from loadtest.report.pages.counterexamples import Shown, complaints, read, replayed, shortest
from locks.hazards import Hazard

COMMITTED = counterexamples.PATH.read_text()
STATE = {"balances": {"A0001": 100}, "rows": {}, "keys": [], "waiting": {}}
LOCKED = {**STATE, "keys": [{"server": "redis", "key": "A0001", "value": "1", "ttl_ms": None, "by": "A"}]}


def step(kind: str, worker: str, command: str, reply: str, state: dict[str, Any]) -> dict[str, Any]:
    return {
        "at": 0, "worker": worker, "task": worker, "kind": kind, "command": command, "reply": reply, "faults": 0,
        "state": state,
    }  # fmt: skip


def report() -> dict[str, Any]:
    """What `manage.py explore` writes when of all strategies it could only run two, and stopped one."""
    results = {slug: not_run(Job(strategy=slug), "no gate") for slug in STRATEGIES}
    stuck = {
        "id": "setnx/s/1b",
        "verdict": "stalled",
        "faults": ["crash-holding"],
        "opening": STATE,
        "steps": [
            step("step", "A", "SETNX A0001 1", "1", LOCKED),
            step("crash", "A", "crashes", "", LOCKED),
            step("step", "B", "SETNX A0001 1", "0", LOCKED),
            step("step", "B", "SETNX A0001 1", "0", LOCKED),
        ],
        "sentences": ["B can never go on: whatever it waits for will not come"],
    }
    ran = {"fired": {"crash-holding": ""}, "schedules": 12, "seconds": 1.0}
    broken = {
        "verdict": "stalled",
        "counterexamples": {"crash-holding": stuck},
        "cut_short": "the time was over",
    }
    results["setnx"] |= {**ran, **broken}
    results["select-for-update"] |= {**ran, "verdict": "kept", "exhausted": True}
    results["token"] |= {**ran, "verdict": "inconclusive", "cause": "the budget of 1 s ended"}
    return {"results": list(results.values()), "environment": {"cores": 2, "commit": "abc"}}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "counterexamples.md"
    path.write_text(f"before\n{counterexamples.BEGIN}\n{counterexamples.END}\nafter\n")
    monkeypatch.setattr(counterexamples, "PATH", path)
    file = tmp_path / "explore.json"
    file.write_text(json.dumps(report()))
    call_command("counterexamples", file)
    return path


def test_the_committed_page_fits() -> None:
    assert complaints(COMMITTED) == []
    assert len(read(COMMITTED)) > 40


def test_a_schedule_is_told_in_sentences(page: Path) -> None:
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert complaints(text) == []
    told = (
        "A sets `A0001` to 1.",
        "**A crashes.**",
        "B finds A's `A0001`.",
        "B can never go on: whatever it waits for will not come.",
    )
    assert read(text) == [Shown("setnx", "stalled", "crash-holding", 4, "setnx/s/1b", told)]
    assert "Cut short after 12 schedules" in text
    assert re.search(r"- \[`token`\]\(.*\): the budget of 1 s ended\.\n", text)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace("- [`fenced`]", "- [fenced]"), "fenced: 0 places, not 1"),
        (lambda text: text.replace("### setnx\n", "### nobody\n"), "nobody: no such strategy"),
        (lambda text: text.replace("setnx/s/1b", "setnx/l/1b"), "setnx/l/1b is no stalled of setnx"),
        (lambda text: text.replace("setnx/s/1b", "token/s/1b"), "token/s/1b is no stalled of setnx"),
        (lambda text: text.replace("setnx/s/1b", "setnx/s/1-b"), "'setnx/s/1-b' is no id of a schedule"),
        (lambda text: text.replace("4 steps", "some steps"), "1 commands, of which 0 can be read"),
    ],
)
def test_a_page_that_does_not_fit_is_seen(page: Path, change: Callable[[str], str], complaint: str) -> None:
    assert complaint in "\n".join(complaints(change(page.read_text())))


def test_a_claim_against_a_schedule_is_seen(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setnx = find("setnx")
    monkeypatch.setattr(setnx, "withstands", setnx.withstands | {Hazard.CONTENTION, Hazard.CRASH})
    with pytest.raises(
        CommandError, match="setnx claims to withstand crash-holding, and setnx/s/1b is stalled"
    ):
        call_command("counterexamples", check=True)


def test_nothing_is_written_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        CommandError, match=r"there is no file .*none.json: `python manage.py explore` writes one"
    ):
        call_command("counterexamples", tmp_path / "none.json")


def test_the_schedules_of_the_page_break_their_strategies_again(committed_db: None) -> None:
    """Those of five strategies with the fewest steps, and one that loads a script which no worker needed before; and
    one whose id was altered to the quiet schedule (A to its end, then B) does not."""
    cheap = shortest(read(COMMITTED), 5)
    assert len({each.strategy for each in cheap}) == 5
    cheap += [each for each in read(COMMITTED) if each.id.startswith("reentrant/s/")]
    assert len(cheap) == 6
    [lost] = [each for each in read(COMMITTED) if each.strategy == "no-lock"]
    quiet, mistold = lost._replace(id="no-lock/l/"), lost._replace(told=(*lost.told[:-1], "30 lost."))
    answers = dict(replayed([*(each for each in cheap if each != lost), quiet], 1))
    assert (
        answers.pop(quiet)
        == "does not come to lost again, but to inconclusive: this schedule breaks no law here"
    )
    assert set(answers.values()) == {""}
    assert dict(replayed([mistold], 1)) == {mistold: "is told otherwise now: 20 lost."}
