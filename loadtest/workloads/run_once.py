"""run-once: a job that must run once a day, on every machine of a cluster.

Each client is a scheduler: it comes to day 1, 2, 3 …, each with a clock of its own, and asks the ledger for the
job of the day: an account that opens with 1 and may not fall below 0. Who is acknowledged runs the job.

Law: each job is acknowledged to exactly one scheduler.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from ledger.reconcile import Operation, Outcome, strongest
from loadtest.laws import Breach, count_law
from loadtest.workloads.base import Legs, Opening, Workload


class RunOnce(Workload):
    """`days` jobs, each wanted by every scheduler."""

    slug = "run-once"
    title = "Run once"
    law = "each day's job is acknowledged to exactly one scheduler"

    def __init__(self, accounts: int = 1, days: int = 100, **options: Any) -> None:
        """`days`: how many jobs there are (`accounts` is not asked for)."""
        super().__init__(days, **options)
        self.today = 0

    def openings(self) -> list[Opening]:
        return [Opening(number, 1, 0) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        """The next day's job, for the scheduler whose workload this is; nothing after the last day."""
        if self.today >= self.accounts:
            return ()
        self.today += 1
        return ((f"A{self.today:04d}", -1),)

    def breaches(self, operations: Mapping[str, Sequence[Operation]]) -> list[Breach]:
        runs = {}
        for job, seen in operations.items():
            outcomes = [each.outcome for each in strongest(seen).values()]
            if Outcome.INFO not in outcomes:  # else it may have run, and nobody knows
                runs[job] = outcomes.count(Outcome.OK)
        return count_law(runs)
