"""The table of results for the terminal, from the results in a JSON file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from loadtest.report.labels import labels
from loadtest.verdict.words import STOPPED

WORD_STYLES = {
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
#: columns that do not fit on a terminal of 80 columns
WIDE_ONLY = {"p95 ms", "p99 ms", "retries"}
WIDE = 118
#: how many names a sentence lists
NAMED = 20


def table(results: Sequence[Mapping[str, Any]], width: int = WIDE) -> Table:
    """Return a table with one row for each result: the expected balance, the final one, and the cost."""
    drawn = Table(title="Which lock can I trust with money?", title_justify="left")
    drawn.add_column("strategy", min_width=18, overflow="fold")  # a module:callable may be longer
    drawn.add_column("verdict", no_wrap=True)
    columns = {name: path for name, path in COLUMNS.items() if width >= WIDE or name not in WIDE_ONLY}
    for name in columns:
        drawn.add_column(name, justify="right", no_wrap=True)
    for name, result in zip(labels(results), results, strict=True):
        word = result["verdict"]
        cells = (_cell(result, path) for path in columns.values())
        drawn.add_row(escape(name), f"[{WORD_STYLES[word]}]{word}[/]", *cells)
    return drawn


def matrix(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of verdicts: strategies × workloads."""
    workloads = list(dict.fromkeys(result["workload"] for result in results))
    drawn = Table(title="Which lock can I trust with money?", title_justify="left")
    drawn.add_column("strategy", min_width=18, overflow="fold")
    for workload in workloads:
        drawn.add_column(workload, no_wrap=True)
    for name, words in verdicts(results).items():
        cells = (words.get(workload) for workload in workloads)
        drawn.add_row(escape(name), *(f"[{WORD_STYLES[word]}]{word}[/]" if word else "" for word in cells))
    return drawn


def verdicts(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return {strategy (on its store, if there are several): {workload: verdict}}."""
    rows: dict[str, dict[str, str]] = {}
    for name, result in zip(labels(results, ("way", "store")), results, strict=True):
        rows.setdefault(name, {})[result["workload"]] = result["verdict"]
    return rows


def remarks(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences for the results that need one: which claim fails, and why there is no verdict. A reason that
    several strategies of a workload and store share appears once."""
    failing, unknown = list[str](), dict[tuple[str, str], list[str]]()
    for name, result in zip(labels(results), results, strict=True):
        if was_stopped(result):
            continue
        if result["verdict"] in ("inconclusive", "not-run"):
            why, remedy = result.get("cause") or result.get("reason"), result.get("remedy")
            sentence = f"{why}." + (f" Remedy: {remedy}." if remedy else "")
            slug = result["strategy"]
            unknown.setdefault((name.removeprefix(slug), sentence), []).append(slug)
        elif result["agrees"] is False:
            failing.append(f"{name} claims to withstand this, but does not: {result['cause']}")
    return [*failing, *(f"{_some(slugs)}{where}: {told}" for (where, told), slugs in unknown.items())]


def further(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the next commands for the strategies that kept the money in each trial with a verdict."""
    words: dict[str, set[str]] = {}
    for each in results:
        words.setdefault(each["strategy"], set()).add(each["verdict"])
    kept = [slug for slug, found in words.items() if "kept" in found <= {"kept", "inconclusive", "not-run"}]
    if not kept:
        return []
    if len(kept) > NAMED:  # without a name, the commands run all strategies of the lab
        kept = [slug for slug in kept if ":" in slug]
    named = "".join(f" {'--lock' if ':' in slug else '--strategy'} {slug}" for slug in kept)
    whom = ", of what kept" if kept else ""
    return [
        f"kept: this load lost nothing, which is no proof that nothing can. Ask further{whom}:",
        f"  python manage.py faults{named}    (a crash, a pause, a partition, a failover …)",
        f"  python manage.py explore{named}    (every order of the commands)",
    ]


def was_stopped(result: Mapping[str, Any]) -> bool:
    """Is it missing because the run was stopped? `stopped` has one sentence for all of these."""
    return result.get("reason") == STOPPED


def stopped(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence on what a stopped run left out, or [] if the run finished."""
    left = [
        " × ".join(each[key] for key in ("strategy", "hazard") if key in each)
        for each in results
        if was_stopped(each)
    ]
    return [f"Stopped: not run: {_some(left)}."] if left else []


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def _cell(result: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = result
    for name in path:
        value = (value or {}).get(name)
    if value is None:
        return "–"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
