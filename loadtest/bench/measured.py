"""What a part of the bench has measured: rows as they come, so that a run that is cut short keeps what it has; and
the least, the median and the most of some rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass
class Measured:
    """`results`: a row for each contender of each measurement; where there are no figures, it has a `reason`.
    `environment`: what was measured on. `warning`: why the figures say little, if others used the machine too."""

    results: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: Row = field(default_factory=dict)
    warning: str | None = None


def not_run(reason: object) -> Row:
    """What stands in a row in the place of figures: something is not there."""
    return {"verdict": "not-run", "reason": str(reason)}


def failed(error: object) -> Row:
    """The same: it ran, and failed or never answered."""
    return {"verdict": "inconclusive", "reason": str(error)}


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return `min`, `median`, `max`, to four digits."""
    found = list(values)
    return {
        "min": _short(min(found)),
        "median": _short(statistics.median(found)),
        "max": _short(max(found)),
    }


def ratios(these: Iterable[float], others: Iterable[float]) -> dict[str, float]:
    """The same of the first to the second, round by round."""
    return spread(this / other for this, other in zip(these, others, strict=True))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` (0 … 1) of them lie. `values` must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
