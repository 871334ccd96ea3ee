"""What a trial hands to the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.reconcile import Books
from loadtest.history.observed import Answers, Observed
from loadtest.verdict.laws import Breach
from loadtest.verdict.words import Word


@dataclass(frozen=True)
class Doubt:
    """Why a trial proves nothing, and what to change so that it does. `own`: False for what another trial lacks (the
    control): to run this one again would change nothing."""

    cause: str
    remedy: str
    own: bool = True


@dataclass(frozen=True)
class Stall:
    """Nobody got on: what stood still, in a sentence, for how many seconds, and whether it ended by itself."""

    sentence: str
    seconds: float
    recovered: bool = False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a trial found out about its subject.

    `books`: None for a workload without a ledger (run-once). `breaches`: from the laws of the workload beyond
    the books (loadtest/verdict/laws.py). `planned`: the hazards of the trial; `fired`: hazard → the evidence that it
    did; `not_applicable`: hazard → why it cannot touch the subject (a hazard without proof, or without a reason,
    counts as one that did not fire). `control`: the control's verdict in the
    same trial otherwise, None if there was none; `is_control`: the subject is the control itself. `answers`: what
    those were told who asked, since the hazard if there was one. `unavailable`: a sentence, if the trial saw the
    subject unavailable. `covered`: a sentence, if the trial was a search: what it went through.
    `errors`: what the clients were told, with how often, the most frequent first.
    """

    books: Books | None
    observed: Observed
    breaches: tuple[Breach, ...] = ()
    planned: frozenset[str] = frozenset()
    fired: Mapping[str, str] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    control: Word | None = None
    is_control: bool = False
    stall: Stall | None = None
    answers: Answers = field(default_factory=Answers)
    unavailable: str = ""
    covered: str = ""
    unfinished: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()

    @property
    def asleep(self) -> set[str]:
        """Planned hazards that can touch the subject, for all that is known, and did not fire."""
        proved = {hazard for hazard, proof in self.fired.items() if proof}
        return set(self.planned) - proved - self.untouchable

    @property
    def untouchable(self) -> set[str]:
        """Planned hazards that cannot touch the subject, with a reason."""
        return {hazard for hazard, why in self.not_applicable.items() if why} & self.planned
