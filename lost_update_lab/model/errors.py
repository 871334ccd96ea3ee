"""What the explorer cannot vouch for, and what has no end: a schedule, or a search beyond its budget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lost_update_lab.runs.run import Run

_now = time.perf_counter  # the real one: workers see another
#: a schedule with more decisions than this one would not end
MOST_DECISIONS = 50_000
MORE_TIME = "give it more time: --budget SECONDS"
SHORTER = "shorter leases or polls, or a smaller --work"
REPORT_IT = "a fault of the explorer: please report it, with the strategy"
GATE_IT = "put a gate before that client: docs/explorer.md, 'Other clients'"


class Broken(Exception):
    """The explorer cannot vouch for this run. The message says why, `remedy` what to do."""

    def __init__(self, cause: str, remedy: str = GATE_IT) -> None:
        super().__init__(cause)
        self.remedy = remedy


class NotTheSame(Broken):
    """What was known did not come again."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not repeatable: {what}. Something outside the gates decides")


def still_bounded(run: Run) -> None:
    """Asked at each decision: a single schedule may be long. Raises Broken."""
    if _now() > run.until:
        raise Broken(f"the budget of {run.bounds.budget:g} s ended", MORE_TIME)
    if run.decisions > MOST_DECISIONS:
        last = ", ".join(step.command for step in run.steps[-4:])
        raise Broken(f"a schedule did not end within {MOST_DECISIONS} decisions; last: {last}", SHORTER)
