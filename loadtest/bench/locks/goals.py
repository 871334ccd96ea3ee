"""The goals of fair-lock, as ratios within one run, pinned to one CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loadtest.bench.goals import at_least, at_most
from loadtest.bench.locks.contenders import OURS
from loadtest.bench.measured import Row

Spread = dict[str, float]


@dataclass(frozen=True)
class Goal:
    """`of` takes the figures and returns the measured one. It raises KeyError, with the reason, if there is none."""

    name: str
    judged: Callable[..., Row]
    bound: float
    of: Callable[[Figures], Spread]

    def judge(self, figures: Figures) -> Row:
        try:
            return self.judged(self.name, self.bound, self.of(figures))
        except KeyError as missing:
            return self.judged(self.name, self.bound, None, missing.args[0])


class Figures:
    """The pinned rows of a run, by measure and strategy."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row["measure"], row["strategy"]): row for row in rows if row["pinned"]}
        self._unpinned = {(row["measure"], row["strategy"]) for row in rows} - self._rows.keys()

    def cycles(self, other: str) -> Spread:
        """Return fair-lock's cycles per cycle of `other`."""
        return self._ratio("uncontended", other, "uncontended")

    def sections(self, other: str, measure: str = "contended") -> Spread:
        """Return the same for sections of 8 processes."""
        ours = "contended, 1 ms" if measure.endswith("1 ms") else "contended"
        return self._ratio(measure, other, ours)

    def ours(self, what: str, *others: tuple[str, str]) -> Spread:
        """Return a figure of fair-lock with 8 processes. `others`: measure and strategy of the ratio's denominator."""
        row = self._row("contended", OURS)
        for measure, strategy in others:
            self._row(measure, strategy)
        return dict(row[what])

    def _ratio(self, measure: str, other: str, ours: str) -> Spread:
        self._row(ours, OURS)
        return dict(self._row(measure, other)["ratio"])

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


GOALS = (
    Goal("uncontended ÷ redis-py's Lock", at_least, 2.0, lambda f: f.cycles("redis-py")),
    Goal("8 processes ÷ one process alone", at_least, 0.75, lambda f: f.sections(OURS, "alone")),
    Goal("8 processes ÷ python-redis-lock", at_least, 2.5, lambda f: f.sections("python-redis-lock")),
    Goal("8 processes ÷ redis-py's Lock at its default", at_least, 1.5, lambda f: f.sections("redis-py")),
    Goal("8 processes: least ÷ most served", at_least, 0.95, lambda f: f.ours("fairness")),
    Goal(
        "8 processes: p99 of the wait ÷ (8 × the section alone)",
        at_most,
        2.0,
        lambda f: f.ours("wait_of_sections", ("alone", OURS)),
    ),
    Goal(
        "8 processes: longest wait ÷ redis-py's longest",
        at_most,
        1 / 50,
        lambda f: f.ours("longest_wait_of_redis_py", ("contended", "redis-py")),
    ),
    Goal("8 processes: lock commands for each section", at_most, 3.0, lambda f: f.ours("commands")),
    Goal(
        "8 processes, 1 ms of work inside ÷ one process alone, the same work",
        at_least,
        0.9,
        lambda f: f.sections(OURS, "alone, 1 ms"),
    ),
)


def judge(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each goal (bench/goals.py)."""
    figures = Figures(rows)
    for goal in GOALS:
        yield goal.judge(figures)
