"""Two runs, or two results, side by side: what each found of the same subject, and what changed.

A run's results become findings: one for each strategy, and one for each strategy under a hazard. Findings of the same
subject are paired; one that only one of the runs has stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

#: figure → its unit; amounts are minor units
FIGURES = {
    "expected": "minor units",
    "final": "minor units",
    "lost_amount": "minor units",
    "lost_updates": "postings",
    "created_amount": "minor units",
    "ops_per_s": "postings/s",
    "p50": "ms",
    "p95": "ms",
    "p99": "ms",
    "overlaps": "postings",
    "retries": "times",
    "deadlocks": "times",
    "schedules": "orders",
}


#: the fields of a result that two results are named after
NAMED = ("strategy", "hazard", "way")


class Subject(NamedTuple):
    """What is judged. Without a `hazard`: all in all."""

    strategy: str
    hazard: str = ""
    store: str = ""
    way: str = ""


class ComparedFinding(NamedTuple):
    """`word`: a verdict. `figures`: those of FIGURES that were measured."""

    word: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class ComparedPair:
    """What the `first` and the `second` run found of a subject. None: nothing."""

    subject: Subject
    first: ComparedFinding | None
    second: ComparedFinding | None

    @property
    def changed(self) -> bool:
        """Did the word change, or has only one of them judged it?"""
        return self.first is None or self.second is None or self.first.word != self.second.word

    @property
    def throughput_ratio(self) -> float | None:
        """Postings per second of the second over those of the first. None: one of them has no such figure, or 0."""
        first, second = (self._figure(each, "ops_per_s") for each in (self.first, self.second))
        return second / first if first and second is not None else None

    @property
    def more_lost(self) -> float | None:
        """What the second lost more than the first, in minor units; negative: less. None: one has no such figure."""
        first, second = (self._figure(each, "lost_amount") for each in (self.first, self.second))
        return None if first is None or second is None else second - first

    def figures(self) -> list[tuple[str, str, float | None, float | None]]:
        """Return (name, unit, first, second) of each figure that one of them has."""
        return [
            (name, unit, self._figure(self.first, name), self._figure(self.second, name))
            for name, unit in FIGURES.items()
            if any(name in each.figures for each in (self.first, self.second) if each)
        ]

    @staticmethod
    def _figure(finding: ComparedFinding | None, name: str) -> float | None:
        return finding.figures.get(name) if finding else None

    def as_json(self) -> dict[str, Any]:
        sides = {"first": self.first, "second": self.second}
        found = {name: each and {"verdict": each.word, **each.figures} for name, each in sides.items()}
        changes = {name: getattr(self, name) for name in ("changed", "throughput_ratio", "more_lost")}
        return {**self.subject._asdict(), **found, **changes}

    def as_row(self) -> list[Any]:
        """Return the cells below HEAD."""
        cells: list[Any] = [*self.subject]
        for each in (self.first, self.second):
            cells += [each.word if each else "", *(self._figure(each, name) for name in FIGURES)]
        return [*cells, self.changed, self.throughput_ratio, self.more_lost]


HEAD = [
    *Subject._fields,
    *(f"{side}_{name}" for side in ("first", "second") for name in ("verdict", *FIGURES)),
    *("changed", "throughput_ratio", "more_lost"),
]


def compared(first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]]) -> list[ComparedPair]:
    """Pair the results, as the JSON files hold them, of two runs. What changed comes first."""
    one, other = dict(_findings(first)), dict(_findings(second))
    pairs = [ComparedPair(subject, one.get(subject), other.get(subject)) for subject in {**one, **other}]
    return sorted(pairs, key=lambda pair: not pair.changed)


def side_by_side(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[ComparedPair]:
    """Pair two results, whatever they are of: the subject is named after both of them."""
    both = [first, second]
    names = {each: " / ".join(dict.fromkeys(str(data.get(each) or "") for data in both)) for each in NAMED}
    return compared(*([{**data, **names}] for data in both))


def _findings(results: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Subject, ComparedFinding]]:
    """Yield what a run found. Its first store has no name: two runs may be compared because their stores differ."""
    usual = None
    for data in results:
        store, way = str(data.get("store") or ""), str(data.get("way") or "")
        usual = store if usual is None else usual
        subject = Subject(data["strategy"], data.get("hazard") or "", "" if store == usual else store, way)
        yield subject, ComparedFinding(str(data["verdict"]), _figures(data))
        for hazard, word in _words(data):
            yield subject._replace(hazard=hazard), ComparedFinding(word, {})


def _figures(data: Mapping[str, Any]) -> dict[str, float]:
    flat = {**data, **(data.get("latency_ms") or {})}
    return {name: flat[name] for name in FIGURES if isinstance(flat.get(name), int | float)}


def _words(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the word under each hazard: what an exploration found, and what `trust` did."""
    yield from (data.get("under") or {}).items()
    for row in data.get("rows") or ():
        if row["word"]:
            yield row["hazard"], row["word"]
