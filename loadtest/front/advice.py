"""Which one for me: four questions, and the first strategy of docs/choosing.md that the evidence lets stand.

The order of preference is the guide's; whether a candidate may be named is the data's. What is passed over is named
with the hazard that it did not survive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadtest.front.evidence import StrategyRow, rows
from loadtest.verdict.words import Word
from locks.hazards import Hazard


@dataclass(frozen=True)
class AdviceQuestion:
    """`answers`: what the address has → what the visitor reads."""

    name: str
    asks: str
    answers: Mapping[str, str]


_HARMLESS = "harmless"
QUESTIONS = (
    AdviceQuestion(
        "work",
        "What happens between the read and the write?",
        {
            "sum": "Nothing: the new balance is the old one plus an amount, perhaps with a floor",
            "quick": "The business decides, in milliseconds",
            "slow": "The business decides slowly, or asks another service",
            "outside": "Something outside the database is changed as well",
        },
    ),
    AdviceQuestion(
        "store",
        "Where is the balance?",
        {"postgres": "In PostgreSQL", "mariadb": "In MariaDB or MySQL", "redis": "In Redis or Valkey"},
    ),
    AdviceQuestion(
        "callers",
        "How many callers want the same account at once?",
        {"few": "A few", "many": "Many: it is a hot account"},
    ),
    AdviceQuestion(
        "survive",
        "What must it survive?",
        {
            "pause": "A caller that dies, and one that stands still for a minute",
            "failover": "That, and a restart or failover of whatever keeps the lock",
            _HARMLESS: "Nothing: doing it twice costs time, not money",
        },
    ),
)
SURVIVES: Mapping[str, Sequence[Hazard]] = {
    "pause": (Hazard.CRASH, Hazard.WORKER_CRASH, Hazard.PAUSE, Hazard.OVERRUN),
    "failover": (
        *(Hazard.CRASH, Hazard.WORKER_CRASH, Hazard.PAUSE, Hazard.OVERRUN),
        *(Hazard.SERVER_RESTART, Hazard.FAILOVER, Hazard.PARTITION, Hazard.EVICTION),
    ),
    _HARMLESS: (),
}
_GUIDE: Mapping[tuple[str, str], Sequence[str]] = {
    ("sum", "few"): ("atomic-update", "select-for-update", "redis-atomic"),
    ("sum", "many"): ("atomic-update", "segmented-balance", "single-writer", "redis-atomic"),
    ("quick", "few"): ("select-for-update", "optimistic-version", "redis-watch"),
    ("quick", "many"): ("select-for-update-function", "select-for-update", "redis-watch"),
    ("slow", "few"): ("optimistic-version", "serializable", "redis-watch"),
    ("slow", "many"): ("redis-then-database", "optimistic-version", "redis-watch"),
    ("outside", "few"): ("token", "redlock", "fenced", "zookeeper-fenced"),
    ("outside", "many"): ("fair-lock", "redlock", "fenced", "zookeeper-fenced"),
}
_EFFICIENCY = {"few": ("token", "fair-lock"), "many": ("fair-lock", "token")}


@dataclass(frozen=True)
class Passed:
    """A candidate that is not recommended, and why."""

    row: StrategyRow
    why: str


@dataclass(frozen=True)
class Advice:
    """`row`: the recommendation; None: nothing that the lab knows fits. `others`: what would do as well."""

    row: StrategyRow | None
    hazards: Sequence[Hazard]
    passed: Sequence[Passed]
    others: Sequence[StrategyRow]
    harmless: bool = False


def advised(answers: Mapping[str, str]) -> Advice | None:
    """Return the recommendation. None: not every question has an answer that is one of its own."""
    if any(answers.get(each.name) not in each.answers for each in QUESTIONS):
        return None
    work, store, callers, survive = (answers[each.name] for each in QUESTIONS)
    harmless = survive == _HARMLESS
    candidates = _EFFICIENCY[callers] if harmless else _GUIDE[work, callers]
    hazards = SURVIVES[survive]
    fit, passed = list[StrategyRow](), list[Passed]()
    for row in (rows()[slug] for slug in candidates):
        if why := _why_not(row, store, hazards):
            passed.append(Passed(row, why))
        else:
            fit.append(row)
    return Advice(fit[0] if fit else None, hazards, passed, fit[1:], harmless)


def _why_not(row: StrategyRow, store: str, hazards: Sequence[Hazard]) -> str:
    """Return why this strategy does not do. "": it does."""
    if store not in row.stores:
        return f"keeps no balance on {store}"
    for hazard in hazards:
        if row.fields[hazard].word not in (Word.KEPT, Word.NOT_RUN):
            word = row.fields[hazard].word
            return f"{word or 'not measured'} under {hazard}"
    return ""
