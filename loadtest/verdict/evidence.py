"""The evidence of a trial, for the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.reconcile import Books
from loadtest.history.observed import ClientAnswers, Observed
from loadtest.verdict.laws import Breach
from loadtest.verdict.words import Word


@dataclass(frozen=True)
class Doubt:
    """Why a trial proves nothing, and what to change so that it does. `own`: False if another trial is at fault (the
    control); repeating this one would change nothing."""

    cause: str
    remedy: str
    own: bool = True


@dataclass(frozen=True)
class Stall:
    """No progress: a sentence on what stalled, for how many seconds, and whether it recovered by itself."""

    sentence: str
    seconds: float
    recovered: bool = False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that a trial found out about its strategy.

    `books`: None for a workload that keeps none (run-once). `breaches`: broken laws of the workload, beyond the books
    (loadtest/verdict/laws.py). `planned`: the trial's hazards. `fired`: hazard → the proof that it fired.
    `not_applicable`: hazard → why it cannot touch the strategy. A hazard without a proof or a reason counts as one
    that did not fire. `control`: the control's verdict in the same trial, or None if no control ran; `is_control`:
    the strategy is the control. `answers`: the answers that clients got; after the hazard, if there was one.
    `unavailable`: how the strategy was unavailable, in a sentence. `covered`: what a search covered, in a sentence.
    `errors`: error → how often clients saw it, most frequent first.
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
    answers: ClientAnswers = field(default_factory=ClientAnswers)
    unavailable: str = ""
    covered: str = ""
    unfinished: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()

    @property
    def asleep(self) -> set[str]:
        """Planned hazards that did not fire, although nothing shows that they cannot touch the strategy."""
        proved = {hazard for hazard, proof in self.fired.items() if proof}
        return set(self.planned) - proved - self.untouchable

    @property
    def untouchable(self) -> set[str]:
        """Planned hazards that, for a stated reason, cannot touch the strategy."""
        return {hazard for hazard, why in self.not_applicable.items() if why} & self.planned
