"""What a lane returns for one search. It has no verdict yet, because the lane does not know the control's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadtest.findings.job import Job
from locks.hazards import Hazard
from lost_update_lab.model.bounds import Fault
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.telling.not_met import WHY_NOT

#: the explorer's fault → the hazard, as claims and evidence name it
HAZARD_OF: dict[Fault | None, Hazard] = {
    None: Hazard.CONTENTION,
    Fault.CRASH: Hazard.CRASH,
    Fault.PAUSE: Hazard.PAUSE,
    Fault.RENEWAL_DIES: Hazard.RENEWAL_DIES,
    Fault.RENEWAL_LIVES: Hazard.RENEWAL_LIVES,
    Fault.FAILOVER: Hazard.FAILOVER,
    Fault.LOST_REPLY: Hazard.LOST_REPLY,
    Fault.CLOCK_JUMP: Hazard.CLOCK_JUMP,
}
MISTAKE = (
    "mend what raises it; or, where it says that the lock was not granted: raise TimeoutError, or name it in the "
    "lock's `gives_up` (locks/giving_up.py)"
)


@dataclass(frozen=True, kw_only=True)
class Explored:
    """The result of a search, as plain values that can cross processes.

    `settled`: the search ended, but it may have left a hazard that is not claimed at the first schedule that loses
    money. `decided`: hazards for which every schedule with only that hazard was executed, however the search ended.
    `came_to`: the schedules' gravest word, with its proof, for each hazard that fired alone, for contention, and for
    all schedules (""). `words`: word → number of schedules. `acknowledged`: the most operations acknowledged in one
    schedule. `overlapping`: schedules in which the steps of two workers interleaved.
    """

    job: Job
    exhausted: bool
    settled: bool = False
    decided: frozenset[str]
    cause: str
    remedy: str
    #: Python's traceback of a thread that hung, or of an error
    trace: str = ""
    figures: Mapping[str, Any]
    overlapping: int
    acknowledged: int
    came_to: Mapping[str, tuple[str, str]]
    words: Mapping[str, int]
    fired: Mapping[str, str]
    not_applicable: Mapping[str, str]
    counterexamples: Mapping[str, dict[str, Any]]
    #: server → how its clock, by which something was decided, was made virtual
    virtual_clocks: Mapping[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Did the search end by itself, without being cut short?"""
        return self.exhausted or self.settled


def explored(
    job: Job, result: SearchResult, acknowledged: int, counterexamples: Mapping[str, dict[str, Any]]
) -> Explored:
    fired = sorted(result.fired)
    return Explored(
        job=job,
        exhausted=result.exhausted,
        settled=result.settled,
        decided=frozenset(
            str(hazard) for fault, hazard in HAZARD_OF.items() if result.exhausted or fault in result.decided
        ),
        cause=result.cause,
        remedy=result.remedy,
        trace=result.trace,
        figures={
            "schedules": result.schedules,
            "played": result.played,
            "states": result.states,
            "steps": result.steps,
            "seconds": round(result.seconds, 3),
            "schedules_per_s": round(result.schedules / result.seconds, 1) if result.seconds else 0.0,
        },
        overlapping=result.overlapping,
        acknowledged=acknowledged,
        came_to={
            "": _came_to(result, "any"),
            **{str(HAZARD_OF[fault]): _came_to(result, fault) for fault in (None, *fired)},
        },
        words=dict(sorted(result.words.items())),
        fired={str(HAZARD_OF[fault]): _proof(result, fault) for fault in fired},
        not_applicable={
            str(HAZARD_OF[fault]): WHY_NOT.get(fault, "it cannot touch the system under test")
            for fault in sorted(set(Fault) - result.applicable)
        },
        counterexamples=counterexamples,
        virtual_clocks=result.virtual_clocks,
    )


def _came_to(result: SearchResult, fault: Any) -> tuple[str, str]:
    word = result.worst if fault == "any" else result.under(fault)
    found = result.smallest(word, fault)
    return word, "; ".join(found.judgement.sentences) if found else ""


def _proof(result: SearchResult, fault: Fault) -> str:
    count = sum(number for (_, faults), number in result.counts.items() if fault in faults)
    return f"in {count} finished schedules"
