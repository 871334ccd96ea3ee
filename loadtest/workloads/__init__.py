"""Every workload. One a file; pure Python."""

from __future__ import annotations

from typing import Any

from loadtest.workloads.base import Legs, Opening, Turns, Workload
from loadtest.workloads.deposits import Deposits
from loadtest.workloads.imports import Imports
from loadtest.workloads.read_mostly import ReadMostly
from loadtest.workloads.run_once import RunOnce
from loadtest.workloads.stock import Stock
from loadtest.workloads.transfers import Transfers

__all__ = ["EXPLORED", "WORKLOADS", "Legs", "Opening", "Turns", "Workload", "find"]

#: The only list.
WORKLOADS: dict[str, type[Workload]] = {
    workload.slug: workload for workload in (Deposits, Imports, Stock, Transfers, RunOnce, ReadMostly)
}
#: those that `explore` offers
EXPLORED: dict[str, Turns] = {slug: each.turns for slug, each in WORKLOADS.items() if each.turns}


def find(slug: str, accounts: int = 1, /, **options: Any) -> Workload:
    """Return the workload `slug`. Raises ValueError that lists the known ones, or names the wrong option."""
    if slug not in WORKLOADS:
        raise ValueError(f"no workload {slug!r}. Known: {', '.join(WORKLOADS)}")
    if unknown := sorted(options.keys() - WORKLOADS[slug].options.keys()):
        known = ", ".join(WORKLOADS[slug].options) or "it has none"
        raise ValueError(f"the workload {slug} has no option {', '.join(unknown)}. Known: {known}")
    return WORKLOADS[slug](accounts, **options)
