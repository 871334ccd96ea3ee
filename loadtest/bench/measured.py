"""What a part of the bench has measured: rows as they come, so that a run that is cut short keeps what it has."""

from __future__ import annotations

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
