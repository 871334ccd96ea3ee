"""What a search may be called: `kept` needs all of its schedules, all of its faults, and a control that lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadtest.findings.explored import HAZARD_OF, Explored
from loadtest.findings.finding import finding, verdict_on
from loadtest.findings.job import Job
from loadtest.report.explorer_table import ended, not_kept, remarks, so_far
from loadtest.verdict.claims import Exit, exit_code
from loadtest.verdict.words import Word
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN

ALL = {str(hazard): "in 7 finished schedules" for fault, hazard in HAZARD_OF.items() if fault}
SOUND = Explored(
    job=Job(strategy="token"),
    exhausted=True,
    decided=frozenset(map(str, HAZARD_OF.values())),
    cause="",
    remedy="",
    figures={"schedules": 40, "states": 90, "steps": 400, "seconds": 1.0, "schedules_per_s": 40.0},
    overlapping=30,
    acknowledged=2,
    came_to={"": (UNBROKEN, ""), "contention": (UNBROKEN, ""), "crash-holding": (UNBROKEN, "")},
    words={UNBROKEN: 40},
    fired=ALL,
    not_applicable={},
    counterexamples={},
)


def test_every_schedule_and_a_control_that_lost() -> None:
    verdict = verdict_on(SOUND, Word.LOST)
    assert verdict.word == "kept"
    assert verdict.cause.startswith("every one of 40 schedules within the bounds kept the money")
    assert finding(SOUND, Word.LOST)["under"] == {"contention": "kept", "crash-holding": "kept"}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"exhausted": False, "cause": "the budget of 3 s ended"}, "the budget of 3 s ended"),
        ({"exhausted": False, "cause": "a client talked to redis past the gates"}, "past the gates"),
        ({"fired": {k: v for k, v in ALL.items() if k != "pause"}}, "did not fire: pause"),
        ({"acknowledged": 0}, "no operation was acknowledged"),
        ({"overlapping": 0}, "no two operations overlapped"),
        ({"came_to": {**SOUND.came_to, "": ("inconclusive", "A raised KeyError")}}, "A raised KeyError"),
    ],
)
def test_anything_less_is_inconclusive_with_its_cause(change: dict[str, Any], cause: str) -> None:
    verdict = verdict_on(replace(SOUND, **change), Word.LOST)
    assert verdict.word == "inconclusive"
    assert cause in verdict.cause
    assert verdict.remedy


def test_a_hazard_that_a_search_finished_within_its_time_is_decided() -> None:
    cut = replace(SOUND, exhausted=False, cause="the budget of 3 s ended", decided=frozenset({"contention"}))
    found = finding(cut, Word.LOST)
    assert found["verdict"] == "inconclusive"
    assert found["under"] == {"contention": "kept", "crash-holding": "inconclusive"}
    assert found["agrees"] is None
    assert finding(replace(cut, acknowledged=0), Word.LOST)["under"]["contention"] == "inconclusive"


def test_what_only_two_faults_together_break_is_shown_and_against_the_claim_of_both() -> None:
    both = {"faults": ["pause", "crash-holding"], "verdict": "lost", "id": "fenced/l/1a", "confirmed": 10}
    seen = replace(
        SOUND,
        job=Job(strategy="fenced", faults=2),
        came_to={**SOUND.came_to, "": ("lost", "100 + 10 became 100")},
        counterexamples={"crash-holding + pause": both},
    )
    found = finding(seen, Word.LOST)
    assert (found["verdict"], found["counterexample"], found["agrees"]) == ("lost", both, False)
    assert "fenced: lost under pause and crash-holding together; again:" in remarks([found])[0]
    assert "claims to withstand pause and crash-holding together, and does not" in remarks([found])[1]
    assert finding(replace(seen, job=Job(strategy="setnx", faults=2)), Word.LOST)["agrees"] is True


def test_a_subject_that_only_raises_was_run() -> None:
    """No fault can touch what sends no command: `not-run` would hide why it sends none."""
    raised = {"came_to": {"": ("inconclusive", "A raised KeyError"), "contention": ("inconclusive", "")}}
    verdict = verdict_on(replace(SOUND, fired={}, not_applicable=ALL, **raised), Word.LOST)
    assert verdict.word == "inconclusive"
    assert "A raised KeyError" in verdict.cause


@pytest.mark.parametrize("control", [None, Word.KEPT, Word.STALLED, Word.INCONCLUSIVE])
def test_nothing_is_kept_unless_the_control_lost_money(control: Word | None) -> None:
    found = finding(SOUND, control)
    assert found["verdict"] == "inconclusive"
    assert set(found["under"].values()) == {"inconclusive"}
    assert found["agrees"] is None


def test_what_cannot_touch_the_subject_need_not_fire() -> None:
    fired = {k: v for k, v in ALL.items() if k != "renewal-dies"}
    assert (
        verdict_on(replace(SOUND, fired=fired, not_applicable={"renewal-dies": "one thread"}), Word.LOST).word
        == "kept"
    )


def test_a_broken_law_is_reported_however_far_the_search_went() -> None:
    lost = replace(
        SOUND,
        exhausted=False,
        decided=frozenset(),
        cause="the budget ended",
        came_to={"": ("lost", "10 lost"), "contention": (UNBROKEN, ""), "crash-holding": ("lost", "10 lost")},
    )
    found = finding(lost, Word.LOST)
    assert (found["verdict"], found["cause"], found["cut_short"]) == ("lost", "10 lost", "the budget ended")
    assert found["under"] == {"contention": "inconclusive", "crash-holding": "lost"}
    assert found["agrees"] is False
    assert so_far(found) == "lost so far"
    assert "token (claims not decided: contention)" in remarks([found])[-1]
    assert so_far(finding(replace(lost, exhausted=True), Word.LOST)) == "lost"


def test_a_search_that_left_what_is_not_claimed_has_decided_the_claims() -> None:
    """`token` claims nothing of a pause, nor of a clock that jumps; of the latter nothing was found."""
    left = replace(
        SOUND,
        exhausted=False,
        settled=True,
        decided=frozenset({"contention", "crash-holding"}),
        came_to={
            **SOUND.came_to,
            "": ("lost", "10 lost"),
            "pause": ("lost", "10 lost"),
            "clock-jump": (UNBROKEN, ""),
        },
    )
    found = finding(left, Word.LOST)
    assert (found["verdict"], found["exhausted"], found["cut_short"]) == ("lost", False, "")
    assert found["under"] == {
        "contention": "kept",
        "crash-holding": "kept",
        "pause": "lost",
        "clock-jump": "inconclusive",
    }
    assert (found["agrees"], so_far(found), ended(found)) == (True, "lost", "decided")
    assert remarks([found]) == []
    unbroken = replace(
        left, came_to={k: v for k, v in left.came_to.items() if k in ("contention", "clock-jump")}
    )
    unbroken = replace(unbroken, came_to={"": (UNBROKEN, ""), **unbroken.came_to})
    assert verdict_on(unbroken, Word.LOST).word == "inconclusive"


def test_what_can_be_repeated_is_shown_first() -> None:
    examples = {
        "pause": {"verdict": "lost", "id": "", "faults": ["pause"]},
        "failover": {"verdict": "lost", "id": "token/l/3b", "faults": ["failover"]},
    }
    lost = replace(SOUND, came_to={"": ("lost", "10 lost")}, counterexamples=examples)
    assert finding(lost, Word.LOST)["counterexample"] == examples["failover"]
    lost = replace(lost, counterexamples={"pause": examples["pause"]})
    assert finding(lost, Word.LOST)["counterexample"] == examples["pause"]


@pytest.mark.parametrize(
    ("under", "claims", "agrees", "code"),
    [
        ({"contention": "kept", "pause": "lost"}, ["contention"], True, Exit.AGREES),
        (
            {"contention": "kept", "pause": "lost", "failover": "inconclusive"},
            ["contention"],
            None,
            Exit.AGREES,
        ),
        ({"contention": "inconclusive", "pause": "lost"}, ["contention"], None, Exit.INCONCLUSIVE),
        ({"contention": "inconclusive", "pause": "lost"}, ["contention", "pause"], False, Exit.DISAGREES),
    ],
)
def test_a_claim_that_was_not_decided_is_no_agreement(
    under: dict[str, str], claims: list[str], agrees: bool | None, code: Exit
) -> None:
    result = {"strategy": "token", "verdict": "lost", "under": under, "claims": claims, "agrees": agrees}
    control = {**result, "strategy": "no-lock", "under": {}, "claims": []}
    assert exit_code([control, result]) == code


def test_each_fault_has_its_hazard() -> None:
    assert set(HAZARD_OF) == {None, *Fault}


@pytest.mark.parametrize(
    ("required", "code"),
    [
        ((), Exit.AGREES),
        (("contention",), Exit.AGREES),
        (("contention", "pause"), Exit.DISAGREES),
        (("failover",), Exit.DISAGREES),  # not tried
        (("renewal-dies",), Exit.AGREES),  # it cannot touch it
    ],
)
def test_what_is_required_is_kept_or_the_exit_code_is_1(required: tuple[str, ...], code: Exit) -> None:
    under = {"contention": "kept", "pause": "lost"}
    result = {
        "strategy": "mylocks:mine", "verdict": "lost", "under": under, "claims": ["contention"], "agrees": True,
        "not_applicable": {"renewal-dies": "no second thread"}, "cut_short": "", "counterexample": None,
    }  # fmt: skip
    control = {**result, "strategy": "no-lock", "under": {"contention": "lost"}, "claims": []}
    assert exit_code([control, result], required) == code
    assert bool(not_kept([control, result], required)) == (code == Exit.DISAGREES)
    [told] = remarks([result])
    assert "lost under pause" in told
    assert "--require pause" in told
