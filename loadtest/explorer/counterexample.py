"""Choose, shrink, confirm and show counterexamples."""

from __future__ import annotations

from functools import partial
from typing import Any

from loadtest.findings.explored import HAZARD_OF
from loadtest.findings.gloss import Gloss
from loadtest.findings.job import BREACH_WORDS, Job
from lost_update_lab.harness import Harness
from lost_update_lab.replay.annotate import witnessed
from lost_update_lab.replay.shrink import TIMES, ends, repeatable
from lost_update_lab.runs.found import Found, SearchResult
from lost_update_lab.search.search import Search
from lost_update_lab.telling.folding import folded
from lost_update_lab.telling.narrative import told


def counterexamples(job: Job, harness: Harness, search: Search, gloss: Gloss) -> dict[str, dict[str, Any]]:
    """Return hazard (or hazards) → the smallest schedule with only this hazard that breaks a law, repeated ten
    times."""
    shown, until = {}, ends(search.result)
    witness = partial(witnessed, harness, search.calibrated)
    for found in _worth_showing(search.result):
        faults = " + ".join(str(HAZARD_OF[fault]) for fault in found.faults or (None,))
        small, times = repeatable(harness, search.calibrated, found, until, witness)
        # no id unless every repetition had the same outcome
        name = job.replay_id(small.word, small.choices) if times == TIMES else ""
        shown[faults] = counterexample(name, small, times, gloss)
    return shown


def _worth_showing(result: SearchResult) -> list[Found]:
    """Return the smallest counterexample under each single fault, and that of a combination of faults if there is
    one."""
    found = []
    for fault in HAZARD_OF:
        word = result.under(fault)
        if fault and word == result.under(None):
            continue  # it happens without the fault
        if word in BREACH_WORDS.values() and (smallest := result.smallest(word, fault)):
            found.append(smallest)
    combined = result.combined()
    return [*found, combined] if combined and combined.word in BREACH_WORDS.values() else found


def counterexample(name: str, found: Found, confirmed: int, gloss: Gloss) -> dict[str, Any]:
    """Return the schedule in all its forms: the id that repeats it (`name`), its steps, and sentences."""
    steps = gloss.steps(found.steps)
    told_by = [gloss.state(s) for s in found.states]
    opening, *states = told_by or [None] * (1 + len(steps))  # type: ignore[list-item]
    shown = [
        {**step._asdict(), "sentence": sentence, "state": state}
        for step, sentence, state in zip(steps, told(steps), states, strict=True)
    ]
    return {
        "id": name,
        "verdict": found.word,
        "faults": [str(HAZARD_OF[fault]) for fault in found.faults],
        "confirmed": confirmed,
        "opening": opening,
        "steps": shown,
        "trace": found.judgement.trace,
        "sentences": [
            *(step["sentence"] for step in folded(shown)),
            *map(gloss.sentence, found.judgement.sentences),
        ],
    }
