"""run-once: a daily job on a cluster of schedulers, each with its own clock. The job must run once a day.

Law: each day's job runs exactly once. More than once is `created` (paid twice), not at all is `lost`.

    clocks 2 ms apart    A: 03:00 is the job still to do? → yes ……… takes it, runs
                         B:      03:00 is the job still to do? → yes ……… takes it, runs: a second time

A job is an account that opens with 1 and may not fall below 0. The scheduler whose posting of −1 is acknowledged runs
the job. Every other scheduler is told that it was taken. "Busy" is an answer too: another scheduler is running the job.
The schedulers of one process share its clock, as those of one machine do. The clocks of different processes differ by
up to `skew` seconds. A day is `day` seconds long.

A lock alone does not make the job run once. It keeps two schedulers from running it at the same time, but not one after
the other, which is what happens if their clocks differ by more than the job takes. The record that the job ran, read
and written under the lock, makes it run once. `recorded: false` leaves the record out: every scheduler runs the job,
whatever the lock.

What the job does in another system is not part of the record's transaction: docs/daily-job.md, examples/daily_job.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence

from ledger.reconcile import ClientOutcome
from loadtest.history.calls import Call
from loadtest.verdict.laws import Breach, count_law
from loadtest.workloads.base import Legs, Opening, Workload, whole


class RunOnce(Workload):
    """Every client is a scheduler. It asks for the job of day 1, 2, … when its own clock says that it is time."""

    slug = "run-once"
    title = "A daily job in a cluster"
    law = "each day's job runs exactly once"
    options = {
        "days": "number of days (50)",
        "day": "length of a day in seconds (0.1)",
        "skew": "largest difference between the clocks of two processes, in seconds (0.02)",
        "recorded": "whether the job records that it ran (true)",
    }
    busy_is_an_answer = True
    processes = 4

    def __init__(
        self,
        accounts: int = 1,
        days: int = 50,
        day: float = 0.1,
        skew: float = 0.02,
        recorded: bool = True,
    ) -> None:
        """`accounts` is ignored: there are as many accounts as days. Times in seconds."""
        super().__init__(whole("days", days, 1, 10_000))
        for name, value in (("day", day), ("skew", skew)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 60:
                raise ValueError(f"{name}: 0 to 60 seconds, not {value!r}")
        if not isinstance(recorded, bool):
            raise ValueError(f"recorded: true or false, not {recorded!r}")
        self.day, self.recorded = float(day), recorded
        self.late = random.Random(os.getpid()).uniform(0, skew)  # noqa: S311  (no secret)
        self.today = 0

    def openings(self) -> list[Opening]:
        return [Opening(number, 1, 0 if self.recorded else None) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs | None:
        if self.today == self.accounts:
            return None
        self.today += 1
        return ((f"A{self.today:04d}", -1),)

    def due(self) -> float:
        return self.today * self.day + self.late

    def breaches(self, calls: Sequence[Call]) -> list[Breach]:
        runs: Counter[str] = Counter()
        unknown = set()
        for call in calls:
            ((job, _),) = call.legs
            runs[job] += call.outcome is ClientOutcome.OK
            if call.outcome is ClientOutcome.INFO:
                unknown.add(job)  # it may have run, so nobody can say that it did not
        return count_law({job: count for job, count in sorted(runs.items()) if count or job not in unknown})
