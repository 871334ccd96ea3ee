"""A goal of the bench: a ratio to something else of the same run. No goal is an absolute rate, which says more of the
machine than of the code.

    median of the rounds on the right side, and every round too     met
    on the wrong side, and every round too                          missed
    the rounds stand on both sides of the bound                     near
    no figure                                                       not-measured, with the reason
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from loadtest.bench.measured import Row


class State(StrEnum):
    """What a run says of a goal."""

    MET = "met"
    NEAR = "near"
    MISSED = "missed"
    NOT_MEASURED = "not-measured"


#: `min`, `median` and `max` of the rounds; or a single figure
Figure = Mapping[str, float] | float


def at_least(name: str, bound: float, figure: Figure | None, reason: str = "") -> Row:
    return _judged(name, "≥", bound, figure, reason)


def at_most(name: str, bound: float, figure: Figure | None, reason: str = "") -> Row:
    return _judged(name, "≤", bound, figure, reason)


def _judged(name: str, sense: str, bound: float, figure: Figure | None, reason: str) -> Row:
    """Return `name`, `goal`, `measured` (the median), `met`, `state`; `spread` where there were rounds, `reason` where
    nothing was measured. `met` is True for that state alone."""
    row: Row = {"name": name, "goal": f"{sense} {bound:g}"}
    if figure is None:
        return row | {"measured": None, "met": False, "state": State.NOT_MEASURED, "reason": reason}
    spread = figure if isinstance(figure, Mapping) else dict.fromkeys(("min", "median", "max"), figure)
    worst, best = (spread["min"], spread["max"]) if sense == "≥" else (-spread["max"], -spread["min"])
    limit = bound if sense == "≥" else -bound
    state = State.MET if worst >= limit else State.MISSED if best < limit else State.NEAR
    row |= {"measured": _short(spread["median"]), "met": state is State.MET, "state": state}
    return row | {"spread": {which: _short(spread[which]) for which in ("min", "max")}}


def _short(value: float) -> float:
    return float(f"{value:.3g}")
