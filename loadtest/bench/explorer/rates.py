"""The figures of a search, ours or a peer's."""

from __future__ import annotations

from loadtest.bench.measured import Row


def rates(schedules: int, steps: int | None, seconds: float) -> Row:
    """`steps`: None where nobody counts them."""
    return {
        "schedules": schedules,
        "seconds": round(seconds, 3),
        "schedules_per_s": round(schedules / seconds, 1),
        "steps_per_s": None if steps is None else round(steps / seconds, 1),
    }
