"""The results of a part of the bench: rows as they arrive, so an aborted run keeps its rows, and the minimum, median
and maximum of rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from loadtest.verdict.words import Word

Row = dict[str, Any]


@dataclass
class Measured:
    """`results`: a row for each contender of each measurement, with a `reason` if it has no figures. `environment`: the
    machine. `warning`: why the figures are unreliable, if other programs used the machine too."""

    results: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: Row = field(default_factory=dict)
    warning: str | None = None


def not_run(reason: object) -> Row:
    """Return the part of a row that replaces the figures: something is missing."""
    return {"verdict": Word.NOT_RUN, "reason": str(reason)}


def failed(error: object) -> Row:
    """The same for a contender that failed or never answered."""
    return {"verdict": Word.INCONCLUSIVE, "reason": str(error)}


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return `min`, `median`, `max`, to four digits."""
    found = list(values)
    return {
        "min": _short(min(found)),
        "median": _short(statistics.median(found)),
        "max": _short(max(found)),
    }


def ratios(these: Iterable[float], others: Iterable[float]) -> dict[str, float]:
    """Return the spread of the ratios of `these` to `others`, round by round."""
    return spread(this / other for this, other in zip(these, others, strict=True))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` (0 … 1) of them lie. `values` must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
