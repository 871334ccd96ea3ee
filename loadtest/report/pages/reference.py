"""docs/reference.md, generated from the registries: every lock and every strategy, with its own sentences.

`manage.py reference` writes it, and a test fails if it is stale. A further table is one more function in `page`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ledger.addresses import BASE_DIR
from ledger.strategies import STRATEGIES
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.sentences import about
from loadtest.report.pages import fault_matrix, measured
from loadtest.workloads import WORKLOADS
from locks import LOCKS
from locks.hazards import Hazard
from lost_update_lab.telling.markdown import in_short_lines

ROOT = BASE_DIR
PATH = ROOT / "docs" / "reference.md"
COLUMNS = (
    "",
    "guarantees",
    "breaks when",
    "round trips",
    "withstands (a claim)",
    "claims measured",
    "source",
)

HEAD = """# Reference

`python manage.py reference` generates this page from the registries `locks.LOCKS`,
`ledger.strategies.STRATEGIES` and `loadtest.workloads.WORKLOADS`. Do not edit it by hand. Each
entry's file has the full text in its docstring.

*Withstands* is the author's claim: the hazards under which a ledger keeps its balance with nothing
but this protection. `manage.py faults` and `manage.py explore` measure the claims. *Claims
measured* takes the claimed hazards in [faults.md](faults.md) that touch the entry, and counts those
under which it kept the balance.

A source such as `A9` is a row of [sources.md](sources.md): what five articles published, and what
else the lab is based on. "Ours" means that it was not published before.
"""


def page() -> str:
    """Return the whole page."""
    plain = {
        slug: strategy
        for slug, strategy in STRATEGIES.items()
        if slug not in LOCKS
        or strategy.__module__ != LOCKS[slug].__module__  # otherwise it is made from the lock
    }
    parts = [
        HEAD,
        "## Locks\n\nEach lock is also a strategy of the same slug: take the lock, then read, compute, write. "
        "The exception\nis `fenced`, a strategy of its own (below); that lock alone is `fenced-unchecked`.\n",
        table(LOCKS),
        "## Strategies\n",
        table(plain),
        "## Workloads\n\n`compare --workload SLUG` selects one; so does a drop-down of Locust's web page. "
        "`compare --option\nNAME=VALUE` sets an option; its default is in brackets.\n",
        workloads(),
        "## What the contract tests show\n\nEvery lock goes through the same cases (`tests/contract`). These are "
        "the cases that a lock breaks.\nThe tests fail when a lock no longer breaks one of them.\n",
        *contract(),
        "## Hazards\n\nThe words of the claims. `manage.py faults` tries some hazards in several variants.\n",
        "| hazard | what happens |\n| --- | --- |\n"
        + "".join(f"| `{hazard}` | {about(hazard)} |\n" for hazard in Hazard),
    ]
    return in_short_lines("\n".join(parts))


def table(entries: dict[str, type[Any]]) -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_row(slug, entry) for slug, entry in entries.items())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def workloads() -> str:
    """Return a table of the workloads: what each does, its law, its options."""
    rows = [("", "law", "options"), ("---",) * 3]
    for slug, workload in WORKLOADS.items():
        page = f"../{textbook_file(workload).relative_to(ROOT)}"
        options = "; ".join(f"`{name}`: {about}" for name, about in workload.options.items())
        rows.append((f"[{slug}]({page}) {workload.title}", workload.law, options or "–"))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def contract() -> Iterator[str]:
    """Yield one paragraph for each lock: the cases that it fails, and why."""
    for slug, lock in LOCKS.items():
        broken = "".join(f"- {case}: {why}\n" for case, why in sorted(lock.fails.items()))
        yield f"**{slug}**\n\n{broken or '- none' + chr(10)}"


def textbook_file(entry: type[Any]) -> Path:
    """Return the file whose docstring is its textbook page."""
    return Path(sys.modules[entry.__module__].__file__ or "")


def _row(slug: str, entry: type[Any]) -> tuple[str, ...]:
    page = textbook_file(entry)
    link = f"[{slug}](../{page.relative_to(ROOT)}) {entry.title}"
    claimed, seen = claim(entry), evidence(entry)
    told = (entry.guarantees, entry.breaks_when, entry.round_trips, claimed, seen, entry.source)
    return link, *(each.replace("|", "\\|") or "–" for each in told)


def claim(entry: type[Any]) -> str:
    """Return the claimed hazards, and which of them are not claimed for accounts on MariaDB."""
    there = getattr(entry, "withstands_on_mariadb", None)
    less = [] if there is None else [hazard for hazard in Hazard if hazard in entry.withstands - there]
    return hazards(entry.withstands) + (f"; on MariaDB not {', '.join(less)}" if less else "")


def evidence(entry: type[Any]) -> str:
    """Return how many of its measured claims came true. For a lock: those of the strategy made from it."""
    words = measured.everything(measured.load(fault_matrix.DATA))
    [strategy] = [slug for slug, each in STRATEGIES.items() if each.__module__ == entry.__module__]
    claimed = [hazard for hazard in ADVERSARIES if fault_matrix.claimed_now(strategy, hazard)]
    return fault_matrix.counted([words.get(f"{strategy} {hazard}") for hazard in claimed]) if claimed else "–"


def hazards(claimed: Iterable[Hazard]) -> str:
    """Return the claimed hazards, or "all but" the others if that is shorter."""
    withstood = [hazard for hazard in Hazard if hazard in set(claimed)]
    missing = [hazard for hazard in Hazard if hazard not in withstood]
    if not withstood:
        return "nothing"
    if len(missing) < len(Hazard) / 3:
        return "all but " + ", ".join(missing) if missing else "all"
    return ", ".join(withstood)
