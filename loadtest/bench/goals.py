"""A goal of the bench: a ratio to another figure of the same run. No goal is an absolute rate, which says more about
the machine than about the code.

    every round is on the right side of the bound     met
    every round is on the wrong side                  missed
    the rounds are on both sides                      near
    no figure                                         not-measured, with the reason
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from loadtest.bench.measured import Row


class GoalState(StrEnum):
    """The result of a goal in one run."""

    MET = "met"
    NEAR = "near"
    MISSED = "missed"
    NOT_MEASURED = "not-measured"


#: `min`, `median` and `max` of the rounds, or a single figure
Figure = Mapping[str, float] | float


def at_least(name: str, bound: float, figure: Figure | None, reason: str = "") -> Row:
    return _judged(name, "≥", bound, figure, reason)


def at_most(name: str, bound: float, figure: Figure | None, reason: str = "") -> Row:
    return _judged(name, "≤", bound, figure, reason)


def _judged(name: str, sense: str, bound: float, figure: Figure | None, reason: str) -> Row:
    """Return `name`, `goal`, `measured` (the median), `met` and `state`, with the `spread` of the rounds, or the
    `reason` why nothing was measured. `met` is True only for the state of that name."""
    row: Row = {"name": name, "goal": f"{sense} {bound:g}"}
    if figure is None:
        return row | {"measured": None, "met": False, "state": GoalState.NOT_MEASURED, "reason": reason}
    spread = figure if isinstance(figure, Mapping) else dict.fromkeys(("min", "median", "max"), figure)
    worst, best = (spread["min"], spread["max"]) if sense == "≥" else (-spread["max"], -spread["min"])
    limit = bound if sense == "≥" else -bound
    state = GoalState.MET if worst >= limit else GoalState.MISSED if best < limit else GoalState.NEAR
    row |= {"measured": _short(spread["median"]), "met": state is GoalState.MET, "state": state}
    return row | {"spread": {which: _short(spread[which]) for which in ("min", "max")}}


def _short(value: float) -> float:
    return float(f"{value:.3g}")
