"""The table of results for the terminal, from the objects of a JSON file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

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


def table(results: Iterable[Mapping[str, Any]]) -> Table:
    """Return one row for each result: what should be there, what is, and at which price."""
    drawn = Table(title="Which lock can I trust with money?", title_justify="left")
    drawn.add_column("strategy")
    drawn.add_column("verdict")
    for name in ("expected", "final", "lost", "postings/s", "p50 ms", "p95 ms", "p99 ms", "retries"):
        drawn.add_column(name, justify="right")
    for result in results:
        latency = result.get("latency_ms", {})
        cells = [result.get(name) for name in ("expected", "final", "lost_amount", "ops_per_s")]
        cells += [latency.get(name) for name in ("p50", "p95", "p99")] + [result.get("retries")]
        word = result["verdict"]
        drawn.add_row(result["strategy"], f"[{STYLE[word]}]{word}[/]", *map(_cell, cells))
    return drawn


def remarks(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each result that needs one: why nothing was found out, where a claim fails."""
    told = []
    for result in results:
        if result["verdict"] in ("inconclusive", "not-run"):
            why, remedy = result.get("cause") or result.get("reason"), result.get("remedy")
            told.append(f"{result['strategy']}: {why}." + (f" Remedy: {remedy}." if remedy else ""))
        elif result["agrees"] is False:
            told.append(f"{result['strategy']} claims to withstand this, and does not: {result['cause']}")
    return told


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
