"""Least, median and most of some rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable


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
