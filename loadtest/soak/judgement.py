"""The verdict on a soak, by the lab's own judge, from what clients, imports and strikes left behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.models import Book, Entry
from ledger.reconcile import ClientOutcome
from ledger.strategies import CONTROL
from loadtest import workloads
from loadtest.history.calls import Call, CallHistory
from loadtest.soak.imports import ImportedFiles
from loadtest.soak.plan import SoakPlan
from loadtest.soak.strikes import HAZARD_OF_STRIKE, Strike, fired, recovery
from loadtest.swarm.import_history import history_of
from loadtest.trials.case import JudgedCase, TrialCase, Witness, run
from loadtest.trials.dependencies import no_valkey
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.laws import Breach, count_law
from loadtest.verdict.stall import longest_stall
from loadtest.verdict.words import Word
from locks.hazards import Hazard

#: seconds without any acknowledged posting after which an operator would be called
STALLED_AFTER = 60.0


@dataclass(frozen=True, kw_only=True)
class SoakCase(TrialCase):
    """A trial whose book is opened before the strikes begin. `careful`: do its clients repeat their keys?"""

    book: Book
    folder: Path
    careful: bool = True

    def open(self) -> Book:
        return self.book


def case_of(plan: SoakPlan, strategy: str, book: Book, folder: Path, *, careful: bool = True) -> SoakCase:
    return SoakCase(
        strategy=strategy,
        workload=workloads.find("deposits", plan.accounts),
        adversary="soak",
        settings=book.settings,
        planned=frozenset(str(hazard) for hazard in HAZARD_OF_STRIKE.values()),
        book=book,
        folder=folder,
        careful=careful,
    )


def judged(
    case: SoakCase,
    posted: CallHistory,
    strikes: Sequence[Strike],
    files: ImportedFiles,
    doubts: Iterable[Doubt],
    control: Word | None,
) -> JudgedCase:
    """Return the result of one book. `posted`: what its clients recorded. Nothing may write to the book any more."""
    book = str(case.book.pk)
    imported = history_of(case.book)
    calls = sorted([*posted.calls, *imported.calls], key=lambda call: call.started)
    counts = _counts(case.folder)
    witness = Witness(
        history=CallHistory(calls),
        fired=fired(strikes, posted.calls, book),
        not_applicable=_not_applicable(case),
        stall=longest_stall(posted.calls, STALLED_AFTER),
        unfinished=posted.counts()["unanswered"],
        breaches=(*files.breaches(case.book), *once_law(posted.calls, case.book)),
        doubts=(*doubts, *_doubts(posted, counts)),
        facts={
            "client": "repeats its key" if case.careful else "takes a new key for each try",
            "postings": len(posted.calls),
            "tries_again": sum(call.retries for call in posted.calls),
            "replies_lost": counts["dropped"],
            "replayed": counts["replayed"],
            "recovery_s": [recovery(each, posted.calls, imported.calls, book) for each in strikes],
            **files.facts(case.book),
        },
    )
    return run(case, lambda *_: witness, control)


def completed(posted: CallHistory) -> int:
    """Return how many of a book's postings its clients have completed. All tries of one intent count as one."""
    begun = {_intent(call.key) for call in posted.calls}
    return len(begun - {_intent(call.key) for call in posted.calls if not call.answered})


def shortfall(wanted: int, done: int, noted: int) -> list[Doubt]:
    """Return the doubts about counts of postings: `wanted`, reported as `done`, and `noted` in the histories."""
    doubts = []
    if done < wanted:
        doubts.append(
            Doubt(f"{done:,} of {wanted:,} postings were completed", "look at the output of the clients")
        )
    if noted != done:
        told = f"the clients reported {done:,} completed postings, but recorded {noted:,}"
        doubts.append(Doubt(told, "look at the histories (--keep)"))
    return doubts


def _intent(key: str) -> str:
    return key.partition(".")[0]


def once_law(calls: Sequence[Call], book: Book) -> list[Breach]:
    """What a client wanted once is in the books once, whichever keys it sent: `intent.2` is the third try of one
    intent. An intent without acknowledgement may be missing."""
    intents = {_intent(call.key) for call in calls}
    wanted = {_intent(call.key) for call in calls if call.outcome is ClientOutcome.OK}
    keys = Entry.objects.filter(book=book).values_list("key", flat=True)
    found = Counter(map(_intent, keys.iterator()))
    return count_law({each: found[each] for each in intents if each in wanted or found[each] > 1})


def _not_applicable(case: SoakCase) -> dict[str, str]:
    why = no_valkey(case.strategy, case.store)
    return {str(Hazard.SERVER_RESTART): why} if why else {}


def _counts(folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in folder.glob("*.counts.json"):
        found.update(json.loads(path.read_text()))
    return found


def _doubts(posted: CallHistory, counts: Counter[str]) -> list[Doubt]:
    unknown = posted.counts()["info"]
    doubts = []
    if not counts["dropped"]:
        doubts.append(Doubt("no reply was lost on its way", "more postings"))
    if unknown and not any("." in call.key for call in posted.calls):
        told = f"{unknown} postings never got an answer, however often their client tried"
        doubts.append(Doubt(told, "look at the web server's log"))
    return doubts


def as_json(case: SoakCase, result: JudgedCase) -> dict[str, Any]:
    """Return the result as JSON. The careless client is a control: it agrees if its double posting is detected."""
    data: dict[str, Any] = result.as_json()
    if not case.careful:
        data |= {"claimed": False, "agrees": result.word == Word.CREATED, "control": True}
    elif result.case.strategy == CONTROL:
        data |= {"agrees": result.word.breaks_the_law, "control": True}
    return data
