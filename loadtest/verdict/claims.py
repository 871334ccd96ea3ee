"""Claims and evidence: does what a strategy claims to withstand agree with what the trial found?

| claimed | kept                     | created, lost, oversold, stalled, refused | inconclusive | not-run |
|---------|--------------------------|-------------------------------------------|--------------|---------|
| yes     | agrees                   | disagrees                                 | undecided    | –       |
| no      | agrees (perhaps too shy) | agrees                                    | undecided    | –       |

A strategy that keeps its balance without claiming to has merely promised too little. That costs no money, and no load
test can show that a strategy cannot lose. So it is not a disagreement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from ledger.strategies import CONTROL
from loadtest.verdict.words import Word
from locks.hazards import Hazard


class Exit(IntEnum):
    """Exit codes of every command that measures."""

    AGREES = 0
    DISAGREES = 1
    USAGE = 2
    INCONCLUSIVE = 3


def claims(withstands: Collection[str], hazards: Iterable[str] = ()) -> bool:
    """Does a strategy that `withstands` these claim to keep its balance under contention and `hazards`?"""
    return {Hazard.CONTENTION, *hazards} <= set(withstands)


def agrees(claimed: bool, word: Word) -> bool | None:
    """Does the claim agree with the verdict? None if the evidence decides nothing."""
    if word in (Word.INCONCLUSIVE, Word.NOT_RUN):
        return None
    return word == Word.KEPT or not claimed


def agreement(opinions: Iterable[tuple[bool, Word]], *, complete: bool = True) -> bool | None:
    """Do all (claimed, word) pairs of one strategy agree? A single disagreement decides. None: some pair is open, or
    the search was not `complete`."""
    found = [agrees(claimed, word) for claimed, word in opinions]
    if False in found:
        return False
    return None if None in found or not complete else True


def undecided(result: Mapping[str, Any]) -> list[str]:
    """Return the hazards that it claims to withstand but that a search left undecided."""
    found: Mapping[str, str] = result.get("under", {})
    return [
        hazard for hazard, word in found.items() if word == Word.INCONCLUSIVE and hazard in result["claims"]
    ]


def unanswered(results: Sequence[Mapping[str, Any]]) -> bool:
    """Was none of the requested strategies run? The control always runs, so its result answers no request."""
    asked = [each for each in results if each["strategy"] != CONTROL] or results
    return all(each["verdict"] == Word.NOT_RUN for each in asked)


def missing(result: Mapping[str, Any], required: Collection[str]) -> list[str]:
    """Return the `required` hazards under which a search did not find that the money is kept. Hazards that cannot
    touch the strategy do not count, unless nothing was run. The control needs none."""
    if result["strategy"] == CONTROL:
        return []
    return [h for h in required if result["under"].get(h) != Word.KEPT and h not in result["not_applicable"]]


def exit_code(results: Sequence[Mapping[str, Any]], required: Collection[str] = ()) -> Exit:
    """Return the exit code of a command with these `results`, in the form of its JSON.

    A disagreement outweighs a doubt, and so does a `required` hazard that is not kept. A result that was not run says
    nothing. But if none of the requested strategies was run, the command is inconclusive.
    """
    run = [each for each in results if each["verdict"] != Word.NOT_RUN]
    if any(each["agrees"] is False for each in run) or any(missing(each, required) for each in results):
        return Exit.DISAGREES
    doubted = any(each["verdict"] == Word.INCONCLUSIVE or undecided(each) for each in run)
    return Exit.INCONCLUSIVE if doubted or unanswered(results) else Exit.AGREES
