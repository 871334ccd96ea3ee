"""A goal of the bench: `name`, `goal`, `measured`, `met`. Without a figure it is not met, and gives the `reason`."""

from __future__ import annotations

from loadtest.bench.measured import Row


def at_least(name: str, bound: float, measured: float | None, reason: str) -> Row:
    return judged(name, f"≥ {bound:g}", measured, measured is not None and measured >= bound, reason)


def at_most(name: str, bound: float, measured: float | None, reason: str) -> Row:
    return judged(name, f"≤ {bound:g}", measured, measured is not None and measured <= bound, reason)


def judged(name: str, goal: str, measured: float | None, met: bool, reason: str) -> Row:
    """`reason` is told only where nothing was measured."""
    row = {"name": name, "goal": goal, "measured": measured and float(f"{measured:.3g}"), "met": met}
    return row if measured is not None else {**row, "reason": reason}
