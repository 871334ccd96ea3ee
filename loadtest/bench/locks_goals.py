"""What fair-lock is held to, as ratios within one run, pinned to one CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from loadtest.bench.locks_contenders import FLOOR, FLOOR_PLAIN

AT_LEAST, AT_MOST = "≥", "≤"


@dataclass(frozen=True)
class Goal:
    """`of` takes the figures and returns what was measured. Raises KeyError when a part of it did not run."""

    name: str
    sense: str
    bound: float
    of: Callable[[Figures], float]

    def judged(self, figures: Figures) -> dict[str, Any]:
        goal = f"{self.sense} {self.bound:g}"
        try:
            measured = self.of(figures)
        except KeyError as missing:
            reason = f"{missing.args[0]} did not run"
            return {"name": self.name, "goal": goal, "measured": None, "met": False, "reason": reason}
        met = measured >= self.bound if self.sense == AT_LEAST else measured <= self.bound
        return {"name": self.name, "goal": goal, "measured": float(f"{measured:.3g}"), "met": met}


class Figures:
    """The pinned rows of a run, looked up by what they are."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = {
            (row["measure"], row["strategy"]): row for row in rows if row["pinned"] and "reason" not in row
        }

    def cycles(self, other: str) -> float:
        """How many cycles fair-lock makes for each one of `other`; the median of the rounds."""
        return float(self._row("uncontended", other)["ratio"]["median"])

    def sections(self, other: str, measure: str = "contended") -> float:
        """The same for sections of 8 processes."""
        return float(self._row(measure, other)["ratio"]["median"])

    def ours(self, what: str) -> float:
        return float(self._row("contended", "fair-lock")[what]["median"])

    def wait(self, strategy: str, which: str) -> float:
        """In milliseconds."""
        return float(self._row("contended", strategy)["wait_ms"][which])

    def section_ms(self) -> float:
        """One process alone, with nobody to wait for."""
        return 1000 / float(self._row("alone", "fair-lock")["per_s"]["median"])

    def _row(self, measure: str, strategy: str) -> dict[str, Any]:
        try:
            return self._rows[measure, strategy]
        except KeyError:
            raise KeyError(f"{strategy} ({measure})") from None


PROCESSES = 8

GOALS = (
    Goal("uncontended ÷ redis-py's Lock", AT_LEAST, 2.0, lambda f: f.cycles("redis-py")),
    Goal(
        "uncontended ÷ two prepared round trips on a bare redis-py connection (a fenced lock's scripts)",
        AT_LEAST,
        0.8,
        lambda f: f.cycles(FLOOR),
    ),
    Goal(
        "uncontended ÷ two prepared round trips without script, number or queue (SET NX PX, DELIFEQ)",
        AT_LEAST,
        0.8,
        lambda f: f.cycles(FLOOR_PLAIN),
    ),
    Goal("8 processes ÷ one process alone", AT_LEAST, 0.75, lambda f: f.sections("fair-lock", "alone")),
    Goal("8 processes ÷ python-redis-lock", AT_LEAST, 3.0, lambda f: f.sections("python-redis-lock")),
    Goal("8 processes ÷ redis-py's Lock at its default", AT_LEAST, 1.5, lambda f: f.sections("redis-py")),
    Goal("8 processes: least ÷ most served", AT_LEAST, 0.95, lambda f: f.ours("fairness")),
    Goal(
        "8 processes: p99 of the wait ÷ (8 × the section alone)",
        AT_MOST,
        2.0,
        lambda f: f.wait("fair-lock", "p99") / (PROCESSES * f.section_ms()),
    ),
    Goal(
        "8 processes: longest wait ÷ redis-py's longest",
        AT_MOST,
        1 / 50,
        lambda f: f.wait("fair-lock", "max") / f.wait("redis-py", "max"),
    ),
    Goal("8 processes: lock commands for each section", AT_MOST, 3.0, lambda f: f.ours("commands")),
    Goal(
        "8 processes, 1 ms of work inside ÷ one process alone, the same work",
        AT_LEAST,
        0.9,
        lambda f: f.sections("fair-lock", "alone, 1 ms"),
    ),
)


def judge(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield `name`, `goal`, `measured`, `met` for each goal."""
    figures = Figures(rows)
    for goal in GOALS:
        yield goal.judged(figures)
