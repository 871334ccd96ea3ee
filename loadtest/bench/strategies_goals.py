"""What the strategies are held to, as ratios to pgbench within one run (8 callers, one account, durable commits)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loadtest.bench.strategies_bulk import BULK_CREATE, SET_BASED
from loadtest.bench.strategies_rates import WINDOWS

Row = dict[str, Any]
MILLION = 1_000_000
MEMORY = 100  # MiB: a tenth of what the rows of a million entries would take in Python


def judge(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield `name`, `goal`, `measured`, `met` for each goal; `measured` is None when its part did not run."""
    for strategy, bound in (
        ("atomic-update", 0.65),
        ("select-for-update-function", 0.6),
        ("segmented-balance", 2),
        ("single-writer", 3),
        (WINDOWS, 30),
    ):
        yield _at_least(f"{strategy} ÷ pgbench, one account", bound, _hot(rows, strategy))
    lines = _first(rows, lambda row: row["strategy"] == SET_BASED)
    speed, ratio = (lines["per_s"]["median"], lines["ratio"]["median"]) if lines else (None, None)
    yield _at_least("set-based import, lines/s on 100 accounts", 300_000, speed)
    yield _at_least(f"set-based import ÷ {BULK_CREATE}", 5, ratio)
    whole = _first(rows, lambda row: row["measure"] == "reconcile" and row["entries"] == MILLION)
    yield _at_most("reconcile of 1,000,000 entries, seconds", 5, whole and whole["seconds"])
    yield _at_most(
        "reconcile of 1,000,000 entries, MiB above the start", MEMORY, whole and whole["memory_mib"]
    )


def _hot(rows: Sequence[Row], strategy: str) -> float | None:
    row = _first(
        rows,
        lambda row: row["measure"] == "postings" and row["accounts"] == 1 and row["strategy"] == strategy,
    )
    return row["ratio"]["median"] if row else None


def _first(rows: Sequence[Row], wanted: Callable[[Row], bool]) -> Row | None:
    return next((row for row in rows if wanted(row)), None)


def _at_least(name: str, bound: float, measured: float | None) -> Row:
    return _judged(name, f"≥ {bound:g}", measured, measured is not None and measured >= bound)


def _at_most(name: str, bound: float, measured: float | None) -> Row:
    return _judged(name, f"≤ {bound:g}", measured, measured is not None and measured <= bound)


def _judged(name: str, goal: str, measured: float | None, met: bool) -> Row:
    row = {"name": name, "goal": goal, "measured": measured and float(f"{measured:.3g}"), "met": met}
    return row if measured is not None else {**row, "reason": "this run left it out"}
