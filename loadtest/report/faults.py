"""The matrix of hazards: strategies × hazards, a word in each cell, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.safestring import mark_safe
from rich.markup import escape
from rich.table import Table

from ledger.reconcile import timeline
from loadtest.faultrecord import moments
from loadtest.report.terminal import STYLE, was_stopped

#: so many strategies have room side by side; the many hazards stand down then
FEW = 8
#: what the terminal has room for
SHORT = {"inconclusive": "?", "not-run": "·", "stalled": "stall", "refused": "refus"}


def table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return the matrix; a `!` stands where the evidence contradicts the strategy's claim."""
    title = "What happens to the money (kept, lost, …; ? inconclusive, · cannot touch it, ! against the claim"
    title += ", – stopped before)" if any(map(was_stopped, results)) else ")"
    found, hazards = rows(results), list(dict.fromkeys(each["hazard"] for each in results))
    if len(found) <= FEW:
        drawn = Table(title=title, title_justify="left")
        drawn.add_column("hazard", no_wrap=True)
        for strategy in found:
            drawn.add_column(escape(strategy), overflow="fold")
        for hazard in hazards:
            drawn.add_row(hazard, *(_cell(cells.get(hazard)) for cells in found.values()))
        return drawn
    drawn = Table(title=title, title_justify="left", padding=(0, 0))
    drawn.add_column("strategy", no_wrap=True)
    for hazard in hazards:
        drawn.add_column("\n".join(hazard.split("-")), overflow="fold")
    for strategy, cells in found.items():
        drawn.add_row(escape(strategy), *(_cell(cells.get(hazard)) for hazard in hazards))
    return drawn


def rows(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return strategy → hazard → cell."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for each in results:
        found.setdefault(each["strategy"], {})[each["hazard"]] = each
    return found


def remarks(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each cell that contradicts its claim or decides nothing; and for each in which a
    stranger's lock fails, which claims nothing but what its author wrote: that is what its author came for."""
    told = []
    for each in results:
        where = f"{each['strategy']} × {each['hazard']}"
        if each["agrees"] is False:
            told.append(f"{where}: claims to withstand it, and is {each['verdict']}: {each['cause']}")
        elif each["verdict"] == "inconclusive":
            told.append(f"{where}: inconclusive: {each['cause']}. Remedy: {each['remedy']}.")
        elif ":" in each["strategy"] and each["verdict"] not in ("kept", "not-run"):
            told.append(f"{where}: {each['verdict']}: {each['cause']}. Again: {each['command']}")
    return told


def context(report: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what the page shows of faults.json: the matrix, and the evidence of each cell."""
    if not report:
        return None
    results = [
        {**each, **_drawn(each), "id": f"{each['strategy']}-{each['hazard']}"} for each in report["results"]
    ]
    hazards = list(dict.fromkeys(each["hazard"] for each in results))
    lines = [
        {"strategy": strategy, "cells": [cells.get(hazard) for hazard in hazards]}
        for strategy, cells in rows(results).items()
    ]
    shown = [each for each in results if each["verdict"] != "not-run"]
    return {"hazards": hazards, "rows": lines, "cells": shown}


def _drawn(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the loss of a cell that is shown, and its drawing with the fault in it; nothing if nothing was lost."""
    if not (name := cell.get("shown_loss")):
        return {}
    drawing = timeline.svg(cell[name], moments(cell))
    return {"loss": cell[name], "drawn": mark_safe(drawing)}  # noqa: S308  (ElementTree escapes)


def _cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    if was_stopped(cell):
        return "[dim]–[/]"
    word = cell["verdict"]
    mark = "!" if cell["agrees"] is False else ""
    return f"[{STYLE[word]}]{SHORT.get(word, word)}{mark}[/]"
