"""What was found out about each strategy under each hazard, from the runs that are committed (docs/data/*.json).

faults.json           a real fault, done to real processes     ─┐
counterexamples.json  every order of the commands of two workers ─┼─→ a field: the claim, the gravest word, the proof
docs/choosing.md      load tests, where both decide nothing      ─┤
`withstands`          what the strategy claims, in its file      ─┘
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.utils.safestring import SafeString

from ledger.strategies import CONTROL, STRATEGIES
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.sentences import about
from loadtest.front import load_tests
from loadtest.front.documents import in_line
from loadtest.report.pages import counterexamples, fault_matrix, measured
from loadtest.report.pages.kinds import group_of
from loadtest.report.strategy_page import sentences
from loadtest.verdict.claims import agrees, claims
from loadtest.verdict.words import LETTERS, Word, gravest
from locks.hazards import Hazard

_THREE = re.compile(r"^(\w+) \+ (\w+) \+ (\w+)")
_TWO = re.compile(r"^(\d+|N) \+ (\d+|N)")


@dataclass(frozen=True)
class FaultDone:
    """One real fault. `variant`: what `manage.py faults --hazard` calls it."""

    variant: str
    word: str


@dataclass(frozen=True)
class Field:
    """A strategy under a hazard. `explored`: the explorer's word, ""; `schedule`: its smallest schedule; `loaded`: the
    word of load tests, where the others have none."""

    hazard: Hazard
    claimed: bool
    explored: str
    done: Sequence[FaultDone]
    schedule: Mapping[str, Any] | None = None
    loaded: str = ""

    @property
    def word(self) -> Word | None:
        """The gravest of all. None: nothing was found out."""
        all_words = (self.explored, self.loaded, *(done.word for done in self.done))
        words = [Word(each) for each in all_words if each]
        decided = [word for word in words if word not in (Word.NOT_RUN, Word.INCONCLUSIVE)]
        return gravest(decided) or gravest(words)

    @property
    def again(self) -> str:
        """The variant to inject to see it: the first with the gravest word that was found; "": none could touch it."""
        done = {each.variant: Word(each.word) for each in self.done if each.word != Word.NOT_RUN}
        worst = gravest(done.values())
        return next((variant for variant, word in done.items() if word is worst), "")

    @property
    def letter(self) -> str:
        return "–" if self.word is None else LETTERS[str(self.word)].upper()

    @property
    def contradicts(self) -> bool:
        return self.word is not None and agrees(self.claimed, self.word) is False

    @property
    def told(self) -> str:
        """The field in words, for who does not see its colour."""
        found = {None: "not measured", Word.NOT_RUN: "not applicable"}.get(self.word, str(self.word))
        return f"{self.hazard}: {found}{', as claimed' if self.claimed and self.word == Word.KEPT else ''}"


@dataclass(frozen=True)
class StrategyRow:
    """A strategy. `schedules`: how many the explorer searched, `ended`: to which end; 0, "": none."""

    slug: str
    title: str
    kind: str
    stores: Sequence[str]
    fields: Mapping[Hazard, Field]
    schedules: int = 0
    ended: str = ""
    own_words: Mapping[str, Any] = field(default_factory=dict)

    @property
    def guarantees(self) -> SafeString:
        return in_line(str(self.own_words.get("guarantees", "")))

    @property
    def round_trips(self) -> str:
        """With what each summand is for: "1 + 5 + 1" is a lock, a transaction, a release."""
        text = str(self.own_words.get("round_trips", ""))
        text = _THREE.sub(r"\1 to take the lock, \2 to post, \3 to release it", text)
        return _TWO.sub(r"\1 to take the lock, \2 to release it", text)

    @property
    def breaks_when(self) -> SafeString:
        return in_line(str(self.own_words.get("breaks_when", "")))

    @property
    def found(self) -> dict[str, int]:
        """Return under how many hazards it came to each word, the gravest first."""
        words = Counter(field.word for field in self.fields.values() if field.word)
        return {str(word): words[word] for word in Word if words[word] and word is not Word.NOT_RUN}

    def withstands(self, hazards: Sequence[Hazard]) -> bool:
        """Did it keep the balance, or cannot it be touched, under contention and all of these?"""
        words = [self.fields[hazard].word for hazard in (Hazard.CONTENTION, *hazards)]
        return words[0] is Word.KEPT and all(word in (Word.KEPT, Word.NOT_RUN) for word in words)


@cache
def rows() -> Mapping[str, StrategyRow]:
    """Return every strategy's row, the control first. The data belong to the checkout: read once a process."""
    done = measured.everything(measured.load(fault_matrix.DATA))
    explored = measured.everything(measured.load(counterexamples.DATA))
    order = sorted(STRATEGIES, key=lambda slug: slug != CONTROL)
    return {slug: _row(slug, done, explored.get(slug, {})) for slug in order}


def provenance() -> dict[str, str]:
    """Return where each file's figures come from: cores and commits."""
    return {
        "faults": measured.provenance(measured.load(fault_matrix.DATA), "cells"),
        "explore": measured.provenance(measured.load(counterexamples.DATA), "strategies"),
    }


def hazards() -> list[tuple[Hazard, str]]:
    """Return each hazard and what happens."""
    return [(hazard, about(hazard)) for hazard in Hazard]


def _row(slug: str, done: Mapping[str, str], searched: Mapping[str, Any]) -> StrategyRow:
    found = STRATEGIES[slug]
    return StrategyRow(
        slug=slug,
        title=found.title,
        kind=group_of(slug),
        stores=found.stores,
        fields={hazard: _field(slug, hazard, done, searched) for hazard in Hazard},
        schedules=searched.get("schedules", 0),
        ended=searched.get("ended", ""),
        own_words=sentences(found),
    )


def _field(slug: str, hazard: Hazard, done: Mapping[str, str], searched: Mapping[str, Any]) -> Field:
    explored = _explored(hazard, searched)
    return Field(
        hazard=hazard,
        claimed=claims(STRATEGIES[slug].withstands, [hazard]),
        explored=explored,
        done=tuple(_variants(slug, hazard, done)),
        schedule=_schedule(hazard, searched),
        loaded=_loaded(slug) if hazard is Hazard.CONTENTION and not explored else "",
    )


def _loaded(slug: str) -> str:
    return str(load_tests.verdicts().get(slug, ""))


def _variants(slug: str, hazard: Hazard, done: Mapping[str, str]) -> Iterator[FaultDone]:
    for variant, adversary in ADVERSARIES.items():
        if adversary.word is hazard and (word := done.get(f"{slug} {variant}")):
            yield FaultDone(variant, word)


def _schedule(hazard: Hazard, searched: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted = [] if hazard is Hazard.CONTENTION else [str(hazard)]
    examples: list[Mapping[str, Any]] = searched.get("counterexamples", [])
    return next((each for each in examples if each["faults"] == wanted), None)


def _explored(hazard: Hazard, searched: Mapping[str, Any]) -> str:
    """The explorer's word on this hazard alone. There is a schedule of its own only where the hazard makes it worse:
    what loses without any fault loses under it too."""
    if not searched or searched["verdict"] == Word.NOT_RUN:
        return ""
    if found := _schedule(hazard, searched):
        return str(found["verdict"])
    if str(hazard) in searched.get("not_applicable", ()):
        return str(Word.NOT_RUN)
    if without := _schedule(Hazard.CONTENTION, searched):
        return str(without["verdict"]) if str(hazard) in searched.get("fired", ()) else ""
    kept = searched["verdict"] == Word.KEPT and (hazard is Hazard.CONTENTION or hazard in searched["fired"])
    return "kept" if kept or str(hazard) in searched.get("kept_under", ()) else ""
