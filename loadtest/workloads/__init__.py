"""Every workload: one file for each, in pure Python."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

from loadtest.workloads.base import Legs, Opening, Option, Turns, Workload

__all__ = ["EXPLORED", "WORKLOADS", "Legs", "Opening", "Option", "Turns", "Workload", "find"]

#: The only list: a workload is its own file, and one line here (docs/CONTRIBUTING.md).
WORKLOADS: dict[str, type[Workload]] = {
    workload.slug: workload
    for workload in map(
        resolve_name,
        (
            "loadtest.workloads.deposits:Deposits",
            "loadtest.workloads.imports:Imports",
            "loadtest.workloads.stock:Stock",
            "loadtest.workloads.transfers:Transfers",
            "loadtest.workloads.run_once:RunOnce",
            "loadtest.workloads.read_mostly:ReadMostly",
        ),
    )
}
#: those that `explore` offers
EXPLORED: dict[str, Turns] = {slug: each.turns for slug, each in WORKLOADS.items() if each.turns}


def find(slug: str, accounts: int = 1, /, **options: Any) -> Workload:
    """Return the workload `slug`. Raises ValueError, which lists the known workloads or names the wrong option."""
    if slug not in WORKLOADS:
        raise ValueError(f"no workload {slug!r}. Known: {', '.join(WORKLOADS)}")
    if unknown := sorted(options.keys() - WORKLOADS[slug].options.keys()):
        known = ", ".join(WORKLOADS[slug].options) or "it has none"
        raise ValueError(f"the workload {slug} has no option {', '.join(unknown)}. Known: {known}")
    return WORKLOADS[slug](accounts, **options)
