"""A case: one strategy on one workload and store against one adversary. Every measurement takes this path.

    Case(strategy, workload, store, adversary) → callers → history → reconcile → verdict → judgement

The presets (`compare`, `faults`, the admin's comparisons) differ in the adversary and in the callers of
`strategy.apply(posting)`: the swarm over HTTP, or worker processes. What they share is here. The explorer runs
a case thousands of times and asks the same judge (loadtest/verdict/judge.py).

A `Trial` (loadtest/models.py) is a command that was run, with a `Result` for each judged case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ledger.books import open_book
from ledger.imports.ways import Way
from ledger.models import Book
from ledger.reconcile import Books
from ledger.reconcile_stored import books_of
from ledger.stores import store_of
from ledger.strategies import CONTROL, find
from loadtest.history.calls import CallHistory
from loadtest.history.observed import Observed
from loadtest.trials.deadlocks import deadlocks
from loadtest.verdict.claims import agrees, claims
from loadtest.verdict.evidence import Doubt, Evidence, Stall
from loadtest.verdict.judge import Verdict, judge, not_run
from loadtest.verdict.laws import Breach, floor_law
from loadtest.verdict.words import Word
from loadtest.workloads import Workload


@dataclass(frozen=True, kw_only=True)
class TrialCase:
    """What is tried, and how. `settings`: those of the book, in seconds."""

    strategy: str
    workload: Workload
    store: str = "postgres"
    adversary: str = "none"
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: the adversary's hazards, all of which must fire
    planned: frozenset[str] = frozenset()
    #: how the workload's files are imported, if it has any
    way: str = Way.LINE_BY_LINE

    @property
    def withstands(self) -> frozenset[str]:
        """The hazards that the subject claims to withstand."""
        return frozenset(map(str, find(self.strategy).claims_on(self.store)))

    @property
    def floors(self) -> dict[str, int]:
        """Account → the lowest balance that it may have."""
        return {each.account: each.floor for each in self.workload.openings() if each.floor is not None}

    def open(self) -> Book:
        """Open a fresh book for this case."""
        accounts = ((each.account, each.opening, each.floor) for each in self.workload.openings())
        return open_book(
            self.strategy,
            accounts,
            store=self.store,
            name=f"trial: {self.workload.slug}" + (f", {self.adversary}" if self.adversary != "none" else ""),
            values=dict(self.settings),
            trusted=True,
        )


@dataclass(frozen=True, kw_only=True)
class Witness:
    """What the callers saw. loadtest/verdict/evidence.py explains the fields that the judge reads."""

    history: CallHistory
    #: keys of the calls answered before the hazard
    before: frozenset[str] = frozenset()
    fired: Mapping[str, str] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    stall: Stall | None = None
    unavailable: str = ""
    unfinished: int = 0
    breaches: tuple[Breach, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    #: further fields of the result
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JudgedCase:
    """A judged case. `books`, `witness` and `book` are None if it was not run."""

    case: TrialCase
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
        """Does the subject claim to keep its balance in this case?"""
        return claims(self.case.withstands, self.case.planned)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of this judgement, with the numbers behind the verdict."""
        case = self.case
        return {
            "strategy": case.strategy,
            "title": find(case.strategy).title,
            **self.verdict.as_json(),
            "claims": sorted(case.withstands),
            "claimed": self.claimed,
            "agrees": agrees(self.claimed, self.word),
            "workload": case.workload.slug,
            "accounts": case.workload.accounts,
            "store": case.store,
            "adversary": case.adversary,
            **({} if case.way == Way.LINE_BY_LINE else {"way": case.way}),
            "settings": dict(case.settings),
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


class Callers(Protocol):
    """Calls `strategy.apply`. When it returns, no caller may still be about to write to the book."""

    def __call__(self, case: TrialCase, book: Book) -> Witness: ...


def run(case: TrialCase, callers: Callers, control: Word | None = None) -> JudgedCase:
    """Run one case. `control`: the control's verdict under the same conditions, so the control runs first; None for
    the control itself."""
    book = case.open()
    before = deadlocks(case.store)
    witness = callers(case, book)
    broken = deadlocks(case.store) - before
    calls, operations = witness.history.calls, witness.history.operations()
    books, observed = books_of(book, operations), Observed.of(operations)
    # a strategy may split a posting over several rows of one account: count rows, as the books do
    rows = Observed.of(store_of(book).spread(operations))
    observed = replace(rows, overlaps=observed.overlaps)
    evidence = Evidence(
        books=books,
        observed=observed,
        breaches=(
            *witness.breaches,
            *floor_law(books, case.floors),
            *case.workload.breaches(calls),
        ),
        planned=case.planned,
        fired=witness.fired,
        not_applicable=witness.not_applicable,
        control=control,
        is_control=case.strategy == CONTROL,
        stall=witness.stall,
        answers=witness.history.answers(witness.before, busy_is_an_answer=case.workload.busy_is_an_answer),
        unavailable=witness.unavailable,
        unfinished=witness.unfinished,
        errors=witness.history.errors(),
        doubts=(*witness.doubts, *case.workload.doubts(calls)),
    )
    return JudgedCase(
        case=case,
        verdict=judge(evidence),
        book=book,
        books=books,
        witness=witness,
        observed=observed,
        deadlocks=broken,
    )


def skipped(case: TrialCase, reason: str, remedy: str = "") -> JudgedCase:
    """Return the judgement of a case that cannot run here. `reason` says why."""
    return JudgedCase(case=case, verdict=not_run(reason, remedy))
