"""What a trial comes to: the verdict, and the numbers behind it, as an object of the JSON file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledger.models import Book
from ledger.reconcile import Books
from ledger.strategies import find
from loadtest.history.observed import Observed
from loadtest.verdict.claims import agrees, claims
from loadtest.verdict.judge import Verdict
from loadtest.verdict.words import Word

if TYPE_CHECKING:
    from loadtest.trials.trial import Trial, Witness


@dataclass(frozen=True, kw_only=True)
class Result:
    """One trial, judged. `books`, `witness`, `book` are None when it was not run."""

    trial: Trial
    verdict: Verdict
    book: Book | None = None
    books: Books | None = None
    witness: Witness | None = None
    observed: Observed = field(default_factory=Observed)
    deadlocks: int = 0

    @property
    def word(self) -> Word:
        return self.verdict.word

    @property
    def claimed(self) -> bool:
        """Does the subject claim to come through this trial?"""
        return claims(self.trial.withstands, self.trial.planned)

    def as_json(self) -> dict[str, Any]:
        """Return the result's object, with every field of the JSON files and the evidence behind them."""
        trial = self.trial
        return {
            "strategy": trial.strategy,
            "title": find(trial.strategy).title,
            **self.verdict.as_json(),
            "claims": sorted(trial.withstands),
            "claimed": self.claimed,
            "agrees": agrees(self.claimed, self.word),
            "workload": trial.workload.slug,
            "accounts": trial.workload.accounts,
            "store": trial.store,
            "adversary": trial.adversary,
            "settings": dict(trial.settings),
            **self._numbers(),
        }

    def _numbers(self) -> dict[str, Any]:
        if self.books is None or self.witness is None or self.book is None:
            return {}
        books = self.books.as_json()
        del books["accounts"]  # one object for each of thousands: `manage.py reconcile` has them
        return {
            "book": str(self.book.pk),
            **books,
            "overlaps": self.observed.overlaps,
            "operations": self.witness.history.counts(),
            "errors": self.witness.history.errors(),
            **self.witness.history.rates(),
            "deadlocks": self.deadlocks,
            **self.witness.facts,
        }
