"""The words of a verdict: their gravity, letters and meanings. The only list.

A new word is one member of `Word`, at the place of its gravity, and one line of `SAYS`.
"""

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
    INCONCLUSIVE = "inconclusive"  # the trial could not have shown a loss
    KEPT = "kept"
    NOT_RUN = "not-run"  # a server is missing, or the adversary cannot touch the strategy

    @property
    def gravity(self) -> int:
        """0 is the gravest."""
        return list(Word).index(self)

    @property
    def breaks_the_law(self) -> bool:
        """Does this word say that money is wrong? Only then has a control shown that its trial can tell."""
        return self in (Word.CREATED, Word.LOST, Word.OVERSOLD)

    @property
    def is_breach(self) -> bool:
        """Does this word mean that something was broken?"""
        return self.gravity <= Word.REFUSED.gravity

    @property
    def letter(self) -> str:
        """One letter, for tables without room for the word."""
        return LETTERS[self.value]


#: word → its letter and meaning. The keys are texts, so that `Word.KEPT` occurs in one line of the lab only
SAYS = {
    "created": ("C", "money appeared: the chain holds an operation twice, or one that failed"),
    "lost": ("L", "an acknowledged operation is not in the balance"),
    "oversold": ("O", "the balance fell below its floor"),
    "stalled": ("S", "no progress by the deadline"),
    "refused": ("R", "unavailable, but right"),
    "inconclusive": ("?", "the run proves nothing; its cause and remedy are given"),
    "kept": (
        "k",
        "every acknowledged operation is in the balance exactly once, under contention that broke the control",
    ),
    "not-run": (
        "·",
        "a server is missing, the hazard cannot touch the strategy, or the run was stopped first",
    ),
}
LETTERS = {word: letter for word, (letter, _) in SAYS.items()}

#: the reason for `not-run` in the results of a run that was stopped early
STOPPED = "the run was stopped before it reached this"


def breaks(word: str) -> bool:
    """Does this word mean that a law was broken? Also accepts words that are not verdicts, such as `unbroken`."""
    return word in {each.value for each in Word if each.is_breach}


def gravest(words: Iterable[Word]) -> Word | None:
    """Return the gravest of these; None if there are none."""
    return min(words, key=lambda word: word.gravity, default=None)


def explained(used: Iterable[str]) -> dict[str, str]:
    """Return {word: meaning} for those `used`, the gravest first."""
    words = set(used)
    return {str(word): SAYS[word][1] for word in Word if word in words}
