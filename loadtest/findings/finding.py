"""The findings of a search about a strategy: as evidence for the judge, and as a result of explore.json."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ledger.strategies import CONTROL, find
from loadtest.findings.explored import HAZARD_OF, MISTAKE, Explored
from loadtest.findings.job import Job
from loadtest.history.observed import Observed
from loadtest.verdict.claims import agreement
from loadtest.verdict.evidence import Doubt, Evidence
from loadtest.verdict.judge import Verdict, in_doubt, judge
from loadtest.verdict.laws import Breach
from loadtest.verdict.words import Word, breaks


def evidence_of(explored: Explored, control: Word | None, hazard: str = "") -> Evidence:
    """Return the evidence. `hazard`: only schedules with this single hazard; "": all. `control`: the control's
    verdict."""
    word, proof = explored.came_to[hazard]
    schedules, states = explored.figures["schedules"], explored.figures["states"]
    doubts = []
    if not explored.exhausted and hazard not in explored.decided:
        covered = f"{schedules} schedules, {states} states were covered"
        cause, remedy = explored.cause, explored.remedy or "give it more time: --budget SECONDS"
        if explored.settled:
            cause, remedy = "not searched to its end: nothing is claimed of it", "--until exhausted"
        doubts.append(Doubt(f"{cause}; {covered}", remedy))
    if word == Word.INCONCLUSIVE:
        doubts.append(
            Doubt(proof, MISTAKE if " raised " in proof else "look at the schedule: --replay with its id")
        )
    every = {str(each) for fault, each in HAZARD_OF.items() if fault}
    planned = explored.job.faults and not hazard and every != set(explored.not_applicable)
    return Evidence(
        books=None,
        observed=Observed(acknowledged=explored.acknowledged, overlaps=explored.overlapping),
        breaches=(Breach(Word(word), proof),) if breaks(word) else (),
        planned=frozenset(every if planned else ()),
        fired=explored.fired,
        not_applicable=explored.not_applicable,
        control=control,
        is_control=explored.job.strategy == CONTROL and control is None,
        doubts=tuple(doubts),
        covered=f"every one of {schedules} schedules within the bounds kept the money",
    )


def verdict_on(explored: Explored, control: Word | None, hazard: str = "") -> Verdict:
    evidence = evidence_of(explored, control, hazard)
    verdict = judge(evidence)
    if verdict.word != Word.INCONCLUSIVE or not evidence.doubts:
        return verdict
    # the search's own doubts are the cause; few overlaps or hazards that did not fire are only the consequence
    told = in_doubt(*evidence.doubts)
    return replace(told, fired=verdict.fired, not_applicable=verdict.not_applicable)


def finding(explored: Explored, control: Word | None) -> dict[str, Any]:
    """Return the result for explore.json."""
    job, strategy = explored.job, find(explored.job.strategy)
    verdict = verdict_on(explored, control)
    under = {h: str(verdict_on(explored, control, h).word) for h in explored.came_to if h}
    examples = explored.counterexamples
    return {
        "strategy": job.strategy,
        "title": strategy.title,
        "verdict": str(verdict.word),
        "cause": verdict.cause,
        "remedy": verdict.remedy,
        **job.as_json(),
        "exhausted": explored.exhausted,
        "cut_short": "" if explored.ended else explored.cause,
        "trace": explored.trace,
        **explored.figures,
        "words": dict(explored.words),
        "under": under,
        "claims": sorted(map(str, job.claims)),
        "agrees": agreement(_opinions(job.claims, under, examples.values()), complete=explored.ended),
        "fired": dict(explored.fired),
        "not_applicable": dict(explored.not_applicable),
        "virtual_clocks": dict(explored.virtual_clocks),
        "counterexample": _shown(examples.values(), str(verdict.word)),
        "counterexamples": dict(examples),
    }


def _opinions(
    withstands: Collection[str], under: Mapping[str, str], examples: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[bool, Word]]:
    """Yield (claimed, word) for each hazard that was tried, and for combinations that only together break a law. A
    hazard that is not claimed need not be decided."""
    for hazard, word in under.items():
        if hazard in withstands or word != Word.INCONCLUSIVE:
            yield hazard in withstands, Word(word)
    for each in examples:
        if len(each["faults"]) > 1:
            yield set(withstands) >= set(each["faults"]), Word(each["verdict"])


def _shown(examples: Collection[Mapping[str, Any]], word: str) -> Mapping[str, Any] | None:
    """Return the first counterexample with this verdict, preferably one that can be repeated."""
    found = [each for each in examples if each["verdict"] == word]
    return next((each for each in found if each["id"]), found[0] if found else None)


#: the figures where no search began
NOTHING: Mapping[str, Any] = {"schedules": 0, "states": 0, "steps": 0, "seconds": 0.0, "words": {}}


def not_run(
    job: Job, reason: str, remedy: str = "", trace: str = "", figures: Mapping[str, Any] = NOTHING
) -> dict[str, Any]:
    """Return the result of a strategy that the explorer cannot touch, or whose server is missing. `figures`: what a
    search had done until it noticed."""
    return {
        "strategy": job.strategy,
        "title": find(job.strategy).title,
        "verdict": str(Word.NOT_RUN),
        "reason": reason,
        "remedy": remedy,
        **job.as_json(),
        "exhausted": False,
        "cut_short": "",
        "trace": trace,
        **NOTHING,
        **figures,
        "under": {},
        "claims": sorted(map(str, job.claims)),
        "agrees": None,
        "fired": {},
        "not_applicable": {},
        "counterexample": None,
        "counterexamples": {},
    }


def in_error(job: Job, error: str, trace: str, remedy: str = "") -> dict[str, Any]:
    """Return the result of a search that raised `error`."""
    verdict = in_doubt(
        Doubt(error, remedy or "look at the trace: the error is in the system under test or in the explorer")
    )
    return {
        **not_run(job, ""),
        "verdict": str(verdict.word),
        "cause": verdict.cause,
        "remedy": verdict.remedy,
        "trace": trace,
    }
