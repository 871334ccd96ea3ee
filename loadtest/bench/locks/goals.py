"""What fair-lock is held to, as ratios within one run, pinned to one CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loadtest.bench.locks.contenders import FLOOR, FLOOR_PLAIN, OURS
from loadtest.bench.measured import Row

AT_LEAST, AT_MOST = "≥", "≤"


@dataclass(frozen=True)
class Goal:
    """`of` takes the figures and returns what was measured. Raises KeyError, with why, when there is no figure."""

    name: str
    sense: str
    bound: float
    of: Callable[[Figures], float]

    def judged(self, figures: Figures) -> Row:
        goal = f"{self.sense} {self.bound:g}"
        try:
            measured = self.of(figures)
        except KeyError as missing:
            reason = missing.args[0]
            return {"name": self.name, "goal": goal, "measured": None, "met": False, "reason": reason}
        met = measured >= self.bound if self.sense == AT_LEAST else measured <= self.bound
        return {"name": self.name, "goal": goal, "measured": float(f"{measured:.3g}"), "met": met}


class Figures:
    """The pinned rows of a run, looked up by what they are."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row["measure"], row["strategy"]): row for row in rows if row["pinned"]}
        self._unpinned = {(row["measure"], row["strategy"]) for row in rows} - self._rows.keys()

    def cycles(self, other: str) -> float:
        """How many cycles fair-lock makes for each one of `other`; the median of the rounds."""
        return self._ratio("uncontended", other, "uncontended")

    def sections(self, other: str, measure: str = "contended") -> float:
        """The same for sections of 8 processes."""
        ours = "contended, 1 ms" if measure.endswith("1 ms") else "contended"
        return self._ratio(measure, other, ours)

    def ours(self, what: str) -> float:
        return float(self._row("contended", OURS)[what]["median"])

    def wait(self, strategy: str, which: str) -> float:
        """In milliseconds."""
        return float(self._row("contended", strategy)["wait_ms"][which])

    def section_ms(self) -> float:
        """One process alone, with nobody to wait for."""
        return 1000 / float(self._row("alone", OURS)["per_s"]["median"])

    def _ratio(self, measure: str, other: str, ours: str) -> float:
        self._row(ours, OURS)
        return float(self._row(measure, other)["ratio"]["median"])

    def _row(self, measure: str, strategy: str) -> Row:
        who = f"{strategy} ({measure})"
        if (measure, strategy) in self._unpinned:
            raise KeyError(f"{who} was not pinned to one CPU")
        row = self._rows.get((measure, strategy))
        if row is None:
            raise KeyError(f"{who} did not run")
        if "reason" in row:
            raise KeyError(f"{who} did not run: {row['reason']}")
        return row


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
    Goal("8 processes ÷ one process alone", AT_LEAST, 0.75, lambda f: f.sections(OURS, "alone")),
    Goal("8 processes ÷ python-redis-lock", AT_LEAST, 3.0, lambda f: f.sections("python-redis-lock")),
    Goal("8 processes ÷ redis-py's Lock at its default", AT_LEAST, 1.5, lambda f: f.sections("redis-py")),
    Goal("8 processes: least ÷ most served", AT_LEAST, 0.95, lambda f: f.ours("fairness")),
    Goal(
        "8 processes: p99 of the wait ÷ (8 × the section alone)",
        AT_MOST,
        2.0,
        lambda f: f.wait(OURS, "p99") / (PROCESSES * f.section_ms()),
    ),
    Goal(
        "8 processes: longest wait ÷ redis-py's longest",
        AT_MOST,
        1 / 50,
        lambda f: f.wait(OURS, "max") / f.wait("redis-py", "max"),
    ),
    Goal("8 processes: lock commands for each section", AT_MOST, 3.0, lambda f: f.ours("commands")),
    Goal(
        "8 processes, 1 ms of work inside ÷ one process alone, the same work",
        AT_LEAST,
        0.9,
        lambda f: f.sections(OURS, "alone, 1 ms"),
    ),
)


def judge(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield `name`, `goal`, `measured`, `met` for each goal."""
    figures = Figures(rows)
    for goal in GOALS:
        yield goal.judged(figures)
