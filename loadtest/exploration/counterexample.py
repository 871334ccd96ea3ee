"""Counterexamples: which ones are worth showing, shrunk, confirmed, and in all their forms."""

from __future__ import annotations

from typing import Any

from loadtest.exploration.explored import HAZARDS
from loadtest.exploration.gloss import Gloss
from loadtest.exploration.job import WORDS, Job
from loadtest.explorer.folding import folded
from loadtest.explorer.narrative import told
from loadtest.explorer.result import Found, Result
from loadtest.explorer.search import Search
from loadtest.explorer.shrink import confirmed, shrink
from loadtest.explorer.stage import Stage
from loadtest.explorer.witness import witnessed


def counterexamples(job: Job, stage: Stage, search: Search, gloss: Gloss) -> dict[str, dict[str, Any]]:
    """Hazard → the smallest schedule with it alone that breaks a law, repeated ten times."""
    shown = {}
    for fault, found in _worth_showing(search.result).items():
        small = shrink(stage, search.watched, found)
        times = confirmed(stage, search.watched, small)
        small = witnessed(stage, search.watched, small)
        shown[str(HAZARDS[fault])] = counterexample(job, small, times, gloss)
    return shown


def _worth_showing(result: Result) -> dict[Any, Found]:
    """The smallest counterexample under each fault alone, and of the gravest word."""
    found = {}
    for fault in HAZARDS:
        word = result.under(fault)
        if fault and word == result.under(None):
            continue  # it needs no fault
        if word in WORDS.values() and (smallest := result.smallest(word, fault)):
            found[fault] = smallest
    return found


def counterexample(job: Job, found: Found, confirmed: int, gloss: Gloss) -> dict[str, Any]:
    """The schedule in all its forms: the id that repeats it, its steps, and sentences."""
    steps = gloss.steps(found.steps)
    opening, *states = [gloss.state(s) for s in found.states] or [None] * (1 + len(steps))
    shown = [
        {**step._asdict(), "sentence": sentence, "state": state}
        for step, sentence, state in zip(steps, told(steps), states, strict=True)
    ]
    return {
        "id": job.replay_id(found.word, found.choices) if found.word in WORDS.values() else "",
        "verdict": found.word,
        "faults": [str(HAZARDS[fault]) for fault in found.faults],
        "confirmed": confirmed,
        "opening": opening,
        "steps": shown,
        "sentences": [
            *(step["sentence"] for step in folded(shown)),
            *map(gloss.sentence, found.judgement.sentences),
        ],
    }
