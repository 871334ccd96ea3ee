"""docs/counterexamples.md: it fits the code, and its schedules lose again on real servers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ledger.strategies import STRATEGIES, find
from loadtest.explorer.campaign import Campaign
from loadtest.findings.finding import not_run
from loadtest.findings.job import Job
from loadtest.report.pages import counterexamples, measured
from loadtest.report.pages.counterexamples import Shown, complaints, replayed, shortest, shown
from locks.hazards import Hazard

COMMITTED = measured.load(counterexamples.DATA)
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
    monkeypatch.setattr(counterexamples, "DATA", tmp_path / "data" / "counterexamples.json")
    file = tmp_path / "explore.json"
    file.write_text(json.dumps(report()))
    call_command("counterexamples", file)
    return path


def test_the_committed_page_fits() -> None:
    assert complaints(counterexamples.PATH.read_text(), COMMITTED) == []
    assert len(shown(COMMITTED)) > 40


def test_a_schedule_has_sentences(page: Path) -> None:
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    runs = measured.load(counterexamples.DATA)
    assert complaints(text, runs) == []
    told = (
        "A sets `A0001` to 1.",
        "**A crashes.**",
        "B finds A's `A0001`.",
        "B can never go on: whatever it waits for will not come.",
    )
    assert shown(runs) == [Shown("setnx", "stalled", ("crash-holding",), 4, "setnx/s/1b", told)]
    assert "Cut short after 12 schedules" in text
    assert re.search(r"- \[`token`\]\(.*\): the budget of 1 s ended\.\n", text)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace('"setnx":', '"nobody":'), "nobody: no such strategy"),
        (lambda text: text.replace("setnx/s/1b", "setnx/l/1b"), "setnx/l/1b is no stalled of setnx"),
        (lambda text: text.replace("setnx/s/1b", "token/s/1b"), "token/s/1b is no stalled of setnx"),
        (lambda text: text.replace("setnx/s/1b", "setnx/s/1-b"), "not a schedule id: 'setnx/s/1-b'"),
        (
            lambda text: text.replace("A crashes", "B crashes"),
            "it is stale: run `python manage.py counterexamples`",
        ),
    ],
)
def test_data_that_do_not_fit_are_seen(page: Path, change: Callable[[str], str], complaint: str) -> None:
    counterexamples.DATA.write_text(change(counterexamples.DATA.read_text()))
    with pytest.raises(CommandError, match=re.escape(complaint)):
        call_command("counterexamples", check=True)


def test_a_page_that_was_edited_is_seen(page: Path) -> None:
    page.write_text(page.read_text().replace("**A crashes.**", "**B crashes.**"))
    with pytest.raises(CommandError, match="stale"):
        call_command("counterexamples", check=True)


def test_a_run_of_one_strategy_is_merged(page: Path, tmp_path: Path) -> None:
    """The rest stays as it was found."""
    reports = report()
    [token] = [each for each in reports["results"] if each["strategy"] == "token"]
    token |= {"verdict": "kept", "exhausted": True, "schedules": 1234}
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"results": [token], "environment": {"cores": 4, "commit": "def"}}))
    call_command("counterexamples", file)
    text = page.read_text()
    others = len(STRATEGIES) - 1
    told = f"strategies: {others} on 2 cores ({others} at commit abc); 1 on 4 cores (1 at commit def)"
    assert told in " ".join(text.split())
    assert "| 1,234 |" in text
    assert "### setnx" in text


def test_what_nobody_explored_is_shown_so(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Not measured" not in page.read_text()
    monkeypatch.setitem(STRATEGIES, "brand-new", STRATEGIES["token"])
    call_command("counterexamples")
    assert re.search(r"## Not measured\n\n- \[`brand-new`\]", page.read_text())


def test_a_claim_against_a_schedule_is_seen(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setnx = find("setnx")
    monkeypatch.setattr(setnx, "withstands", setnx.withstands | {Hazard.CONTENTION, Hazard.CRASH})
    with pytest.raises(
        CommandError, match="setnx claims to withstand crash-holding, and setnx/s/1b is stalled"
    ):
        call_command("counterexamples", check=True)


def test_nothing_is_written_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no file .*none.json: `python manage.py explore` writes one"):
        call_command("counterexamples", tmp_path / "none.json")


def again(jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
    return Campaign(jobs, 1).replays()


@pytest.mark.deep(short=False)
def test_the_schedules_of_the_page_break_their_strategies_again(committed_db: None) -> None:
    """Those of five strategies with the fewest steps, and one that loads a script which no worker needed before; and
    one whose id was altered to the quiet schedule (A to its end, then B) does not."""
    cheap = shortest(shown(COMMITTED), 5)
    assert len({each.strategy for each in cheap}) == 5
    cheap += [each for each in shown(COMMITTED) if each.id.startswith("reentrant/s/")]
    assert len(cheap) == 6
    [lost] = [each for each in shown(COMMITTED) if each.strategy == "no-lock"]
    quiet, mistold = lost._replace(id="no-lock/l/"), lost._replace(told=(*lost.told[:-1], "30 lost."))
    answers = dict(replayed([*(each for each in cheap if each != lost), quiet], again))
    assert answers.pop(quiet) == "ends as inconclusive: this schedule breaks no law here, not as lost"
    assert set(answers.values()) == {""}
    assert dict(replayed([mistold], again)) == {mistold: "now has other sentences: 20 lost."}
