"""The goals of the strategies, as ratios within one run: to pgbench (8 callers, one account, durable commits), to a
COPY of ready rows by as many sessions, and to reading the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loadtest.bench.goals import at_least, at_most
from loadtest.bench.measured import Row
from loadtest.bench.strategies.bulk import BULK_CREATE, READY_SIDE_BY_SIDE, SET_BASED
from loadtest.bench.strategies.rates import LIMIT, WINDOWS

MILLION = 1_000_000
READING = 4  # times the duration of only reading the same rows
MEMORY = 100  # MiB: a tenth of the memory that the rows of a million entries would take in Python


def judge(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each goal (bench/goals.py)."""
    for strategy, bound in (
        ("atomic-update", 0.65),
        ("select-for-update-function", 0.6),
        ("segmented-balance", 2),
        ("single-writer", 3),
        (WINDOWS, 30),
    ):
        yield at_least(f"{strategy} ÷ pgbench, one account", bound, *_figure(_hot(rows, strategy), "ratio"))
    lines = _first(rows, lambda row: row["strategy"] == SET_BASED)
    yield at_least(f"set-based import ÷ {READY_SIDE_BY_SIDE}", 0.65, *_figure(lines, "of_limit"))
    yield at_least(f"set-based import ÷ {BULK_CREATE}", 5, *_figure(lines, "ratio"))
    whole = _first(rows, lambda row: row["measure"] == "reconcile" and row["entries"] == MILLION)
    yield at_most("reconcile of 1,000,000 entries ÷ reading them", READING, *_figure(whole, "of_reading"))
    yield at_most(
        "reconcile of 1,000,000 entries, MiB above the start", MEMORY, *_figure(whole, "memory_mib")
    )


def _hot(rows: Sequence[Row], strategy: str) -> Row | None:
    return _first(
        rows,
        lambda row: row["measure"] == "postings" and row["accounts"] == 1 and row["strategy"] == strategy,
    )


def _first(rows: Sequence[Row], wanted: Callable[[Row], bool]) -> Row | None:
    return next((row for row in rows if wanted(row)), None)


def _figure(row: Row | None, name: str) -> tuple[Any, str]:
    """Return (figure, ""), or None and the reason."""
    if row is None:
        return None, "this run left it out"
    if "reason" in row:
        return None, f"{row['strategy']} did not run: {row['reason']}"
    return row.get(name), f"{LIMIT} did not run"
