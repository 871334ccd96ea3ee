"""The words of a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Word(StrEnum):
    """Gravest first; the gravest that applies is the verdict. `not-run` is no verdict and always has a reason."""

    CREATED = "created"  # an operation twice on the chain, or a failed one on it
    LOST = "lost"  # an acknowledged operation off the chain, or a posting that was torn
    OVERSOLD = "oversold"  # a balance below its floor
    STALLED = "stalled"  # no progress by the deadline, or a waiter gave up though no live worker was inside
    REFUSED = "refused"  # unavailable, but right
    INCONCLUSIVE = "inconclusive"  # the trial could not have told
    KEPT = "kept"
    NOT_RUN = "not-run"  # a server is missing, or the adversary cannot touch the subject

    @property
    def gravity(self) -> int:
        """0 is the gravest."""
        return list(Word).index(self)

    @property
    def breaks_the_law(self) -> bool:
        """Does this word say that money is wrong? Only then has a control shown that its trial can tell."""
        return self in (Word.CREATED, Word.LOST, Word.OVERSOLD)


#: what each says, for the pages that use it; by its text, as only one line of the lab makes a verdict of `Word.KEPT`
MEANING = {
    "created": "money appeared: an operation is on the chain twice, or one that failed is on it",
    "lost": "an acknowledged operation is not in the balance",
    "oversold": "the balance fell below its floor",
    "stalled": "no progress by the deadline",
    "refused": "unavailable, but right",
    "inconclusive": "the run proves nothing: the cause and the remedy are given",
    "kept": "every acknowledged operation is in the balance exactly once, under contention that broke the control",
    "not-run": "a server is missing, the hazard cannot touch the subject, or the run was stopped before",
}

#: one letter each, where a table has no room for the word
LETTERS = {
    "created": "C",
    "lost": "L",
    "oversold": "O",
    "stalled": "S",
    "refused": "R",
    "inconclusive": "?",
    "kept": "k",
    "not-run": "·",
}

#: why something is `not-run` among the results of a run that did not come to its end
STOPPED = "the run was stopped before it came to this"


def explained(used: Iterable[str]) -> dict[str, str]:
    """Return {word: what it says} of those `used`, the gravest first."""
    words = set(used)
    return {str(word): MEANING[word] for word in Word if word in words}
