"""What each hazard is, in a sentence: the one with which its file's docstring begins (loadtest/faults/hazards)."""

from __future__ import annotations

import sys

from loadtest.faults.hazards import ADVERSARIES
from locks.hazards import Hazard

#: the hazard that needs no adversary
CONTENTION = "nothing fails: several workers want the same account at once."


def about(hazard: Hazard) -> str:
    """Return the first sentence of the docstring, without the hazard's name."""
    for adversary in ADVERSARIES.values():
        if adversary.word is hazard:
            first, _, _ = (sys.modules[adversary.__module__].__doc__ or "").partition("\n\n")
            return " ".join(first.partition(": ")[2].split())
    return CONTENTION
