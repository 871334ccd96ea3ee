"""What an exploration says, as the object that goes into explore.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.strategies import CONTROL, find
from loadtest.claims import agrees
from loadtest.exploration.gloss import Gloss
from loadtest.exploration.job import Job
from loadtest.explorer.bounds import Fault
from loadtest.explorer.narrative import told
from loadtest.explorer.result import Found, Result
from loadtest.words import Word
from locks.hazards import Hazard

#: the explorer's fault → the word of claims and evidence
HAZARDS: dict[Fault | None, Hazard] = {
    None: Hazard.CONTENTION,
    Fault.CRASH: Hazard.CRASH,
    Fault.PAUSE: Hazard.PAUSE,
    Fault.RENEWAL_DIES: Hazard.RENEWAL_DIES,
    Fault.RENEWAL_LIVES: Hazard.RENEWAL_LIVES,
    Fault.FAILOVER: Hazard.FAILOVER,
    Fault.LOST_REPLY: Hazard.LOST_REPLY,
    Fault.CLOCK_JUMP: Hazard.CLOCK_JUMP,
}
WHY_NOT = {
    Fault.PAUSE: "nothing there ends by itself while a worker stands still: no lease, no time-out",
    Fault.RENEWAL_DIES: "no worker has a second thread",
    Fault.RENEWAL_LIVES: "no worker has a second thread",
    Fault.FAILOVER: "nothing is kept on a server that fails over",
    Fault.CLOCK_JUMP: "no worker looks at a wall clock",
}


def finding(job: Job, result: Result, shown: Mapping[str, tuple[Found, int]], gloss: Gloss) -> dict[str, Any]:
    """`shown`: hazard → its counterexample, shrunk, and how many of ten repetitions confirmed it."""
    under = {str(HAZARDS[fault]): result.under(fault) for fault in (None, *sorted(result.fired))}
    word, cause, remedy = _verdict(job, result)
    examples = {hazard: counterexample(job, found, times, gloss) for hazard, (found, times) in shown.items()}
    withstands = find(job.strategy).withstands
    return {
        "strategy": job.strategy,
        "title": find(job.strategy).title,
        "verdict": str(word),
        "cause": cause,
        "remedy": remedy,
        **job.as_json(),
        "exhausted": result.exhausted,
        "schedules": result.schedules,
        "states": result.states,
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "schedules_per_s": round(result.schedules / result.seconds, 1) if result.seconds else 0.0,
        "verdicts": dict(sorted(result.verdicts.items())),
        "under": under,
        "claims": sorted(map(str, withstands)),
        "agrees": _agreement(withstands, under, result.exhausted),
        "fired": {str(HAZARDS[fault]): _proof(result, fault) for fault in sorted(result.fired)},
        "not_applicable": {
            str(HAZARDS[fault]): WHY_NOT.get(fault, "it cannot touch the subject")
            for fault in sorted(set(Fault) - result.applicable)
        },
        "counterexample": next((e for e in examples.values() if e["verdict"] == str(word)), None),
        "counterexamples": examples,
    }


def counterexample(job: Job, found: Found, confirmed: int, gloss: Gloss) -> dict[str, Any]:
    """The schedule in all its forms: the id that repeats it, its steps, and sentences."""
    steps = gloss.steps(found.steps)
    sentences = told(steps)
    states = [gloss.state(state) for state in found.states] or [None] * len(steps)
    return {
        "id": job.replay_id(found.verdict, found.choices),
        "verdict": found.verdict,
        "faults": [str(HAZARDS[fault]) for fault in found.faults],
        "confirmed": confirmed,
        "steps": [
            {**step._asdict(), "sentence": sentence, "state": state}
            for step, sentence, state in zip(steps, sentences, states, strict=True)
        ],
        "sentences": [*sentences, *map(gloss.sentence, found.judgement.sentences)],
    }


def not_run(job: Job, reason: str, remedy: str = "") -> dict[str, Any]:
    """The object of what the explorer cannot touch, or what needs a server that is missing."""
    return {
        "strategy": job.strategy,
        "title": find(job.strategy).title,
        "verdict": str(Word.NOT_RUN),
        "reason": reason,
        "remedy": remedy,
        **job.as_json(),
        "exhausted": False,
        "schedules": 0,
        "states": 0,
        "steps": 0,
        "seconds": 0.0,
        "under": {},
        "claims": sorted(map(str, find(job.strategy).withstands)),
        "agrees": None,
        "fired": {},
        "not_applicable": {},
        "counterexample": None,
        "counterexamples": {},
    }


def with_control(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nothing is `kept` unless the control, in the same run and within the same bounds, lost money."""
    control = next((r["verdict"] for r in results if r["strategy"] == CONTROL), None)
    for result in results:
        if result["verdict"] == Word.KEPT and (control is None or not Word(control).breaks_the_law):
            result["verdict"] = str(Word.INCONCLUSIVE)
            result["cause"] = (
                f"the control, which has no lock, came out as {control}: this search cannot tell"
            )
            result["remedy"] = "explore no-lock in the same run, with another workload or larger bounds"
    return results


def _verdict(job: Job, result: Result) -> tuple[Word, str, str]:
    worst = Word(result.worst)
    if worst not in (Word.KEPT, Word.INCONCLUSIVE):
        found = result.smallest(worst)
        return worst, "; ".join(found.judgement.sentences) if found else "", ""
    if not result.exhausted:
        covered = f"{result.schedules} schedules, {result.states} states were covered"
        return (
            Word.INCONCLUSIVE,
            f"{result.cause}; {covered}",
            result.remedy or "give it more time: --budget SECONDS",
        )
    if worst == Word.INCONCLUSIVE:
        found = result.smallest(worst)
        return worst, "; ".join(found.judgement.sentences) if found else "", "look at the schedule by hand"
    if job.faults and (asleep := result.applicable - result.fired):
        named = ", ".join(sorted(str(HAZARDS[fault]) for fault in asleep))
        return Word.INCONCLUSIVE, f"did not fire: {named}", "larger bounds: --faults, --work"
    return Word.KEPT, f"every one of {result.schedules} schedules within the bounds kept the money", ""


def _agreement(withstands: frozenset[Hazard], under: Mapping[str, str], exhausted: bool) -> bool | None:
    """Does the claim agree with what was found under each hazard that was tried? None: not all was seen."""
    opinions = [agrees(Hazard(hazard) in withstands, Word(verdict)) for hazard, verdict in under.items()]
    if False in opinions:
        return False
    return True if exhausted and None not in opinions else None


def _proof(result: Result, fault: Fault) -> str:
    count = sum(number for (_, faults), number in result.counts.items() if fault in faults)
    return f"in {count} finished schedules"
