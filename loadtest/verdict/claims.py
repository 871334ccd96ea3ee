"""Claims beside evidence: does what a strategy claims to withstand agree with what the trial found?

| claimed | kept                     | created, lost, oversold, stalled, refused | inconclusive | not-run |
|---------|--------------------------|-------------------------------------------|--------------|---------|
| yes     | agrees                   | disagrees                                 | undecided    | –       |
| no      | agrees (perhaps too shy) | agrees                                    | undecided    | –       |

A strategy that keeps its balance where it does not claim to has promised too little, which costs nobody money,
and a load test can never show that it cannot lose: that is no disagreement.
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
    """Does somebody who `withstands` these claim to come through a trial with `hazards`, under contention?"""
    return {Hazard.CONTENTION, *hazards} <= set(withstands)


def agrees(claimed: bool, word: Word) -> bool | None:
    """True or False; None when the evidence decides nothing."""
    if word in (Word.INCONCLUSIVE, Word.NOT_RUN):
        return None
    return word == Word.KEPT or not claimed


def exit_code(results: Iterable[tuple[bool, Word]]) -> Exit:
    """Exit code for (claimed, word) of each result. A disagreement outweighs a doubt; what was not run says
    nothing, but if nothing at all was run, that is inconclusive."""
    judged = [(claimed, word) for claimed, word in results if word != Word.NOT_RUN]
    opinions = [agrees(claimed, word) for claimed, word in judged]
    if False in opinions:
        return Exit.DISAGREES
    return Exit.INCONCLUSIVE if None in opinions or not opinions else Exit.AGREES


def unanswered(results: Sequence[Mapping[str, Any]]) -> bool:
    """Was nothing run of what was asked for? The control is run whoever asks: what it came to is no answer."""
    asked = [each for each in results if each["strategy"] != CONTROL] or results
    return all(each["verdict"] == Word.NOT_RUN for each in asked)
