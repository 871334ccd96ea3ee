"""The table of results for the terminal, from the objects of a JSON file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from loadtest.report.labels import labels
from loadtest.words import STOPPED

STYLE = {
    "created": "bold red",
    "lost": "bold red",
    "oversold": "bold red",
    "stalled": "magenta",
    "refused": "yellow",
    "inconclusive": "yellow",
    "kept": "bold green",
    "not-run": "dim",
}


#: columns of numbers: heading → path into the result
COLUMNS = {
    "expected": ("expected",),
    "final": ("final",),
    "lost": ("lost_amount",),
    "postings/s": ("ops_per_s",),
    "p50 ms": ("latency_ms", "p50"),
    "p95 ms": ("latency_ms", "p95"),
    "p99 ms": ("latency_ms", "p99"),
    "retries": ("retries",),
}
#: what a terminal of 80 columns has no room for
WIDE_ONLY = {"p95 ms", "p99 ms", "retries"}
WIDE = 118
#: so many of what a stopped run did not come to are named
NAMED = 20


def table(results: Sequence[Mapping[str, Any]], width: int = WIDE) -> Table:
    """Return one row for each result: what should be there, what is, and at which price."""
    drawn = Table(title="Which lock can I trust with money?", title_justify="left")
    drawn.add_column("strategy", min_width=18, overflow="fold")  # a module:callable may be longer
    drawn.add_column("verdict", no_wrap=True)
    columns = {name: path for name, path in COLUMNS.items() if width >= WIDE or name not in WIDE_ONLY}
    for name in columns:
        drawn.add_column(name, justify="right", no_wrap=True)
    for name, result in zip(labels(results), results, strict=True):
        word = result["verdict"]
        cells = (_cell(result, path) for path in columns.values())
        drawn.add_row(escape(name), f"[{STYLE[word]}]{word}[/]", *cells)
    return drawn


def matrix(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return strategies × workloads: the verdict of each."""
    workloads = list(dict.fromkeys(result["workload"] for result in results))
    drawn = Table(title="Which lock can I trust with money?", title_justify="left")
    drawn.add_column("strategy", min_width=18, overflow="fold")
    for workload in workloads:
        drawn.add_column(workload, no_wrap=True)
    for name, words in verdicts(results).items():
        cells = (words.get(workload) for workload in workloads)
        drawn.add_row(escape(name), *(f"[{STYLE[word]}]{word}[/]" if word else "" for word in cells))
    return drawn


def verdicts(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return {strategy (on its store, if there are several): {workload: verdict}}."""
    rows: dict[str, dict[str, str]] = {}
    for name, result in zip(labels(results, ("store",)), results, strict=True):
        rows.setdefault(name, {})[result["workload"]] = result["verdict"]
    return rows


def remarks(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each result that needs one: why nothing was found out, where a claim fails."""
    told = []
    for name, result in zip(labels(results), results, strict=True):
        if was_stopped(result):
            continue
        if result["verdict"] in ("inconclusive", "not-run"):
            why, remedy = result.get("cause") or result.get("reason"), result.get("remedy")
            told.append(f"{name}: {why}." + (f" Remedy: {remedy}." if remedy else ""))
        elif result["agrees"] is False:
            told.append(f"{name} claims to withstand this, and does not: {result['cause']}")
    return told


def further(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what to ask next of those that kept the money; nothing of the others."""
    kept = dict.fromkeys(each["strategy"] for each in results if each["verdict"] == "kept")
    if not kept:
        return []
    named = " ".join(f"{'--lock' if ':' in slug else '--strategy'} {slug}" for slug in kept)
    return [
        "kept: this load lost nothing, which is no proof that nothing can. Ask further, of what kept:",
        f"  python manage.py faults {named}    (a crash, a pause, a partition, a failover …)",
        f"  python manage.py explore {named}    (every order of the commands)",
    ]


def was_stopped(result: Mapping[str, Any]) -> bool:
    """Is it missing because the run was stopped? `stopped` tells of all of those at once."""
    return result.get("reason") == STOPPED


def stopped(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the sentence about what a stopped run did not come to; none if it came to its end."""
    left = [
        " × ".join(each[key] for key in ("strategy", "hazard") if key in each)
        for each in results
        if was_stopped(each)
    ]
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    return [f"Stopped: not run: {', '.join(left[:NAMED])}{more}."] if left else []


def _cell(result: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = result
    for name in path:
        value = (value or {}).get(name)
    if value is None:
        return "–"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
