"""The matrix of hazards for the page (strategies × hazards, a word in each cell), and the remarks about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.safestring import mark_safe

from ledger.reconcile import timeline
from loadtest.faults.scene.record import moments, put_right
from loadtest.report.terminal import was_stopped


def rows(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return strategy → hazard → cell."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for each in results:
        found.setdefault(each["strategy"], {})[each["hazard"]] = each
    return found


def not_applicable(cell: Mapping[str, Any]) -> bool:
    """Can the hazard not touch the strategy? A cell that lacks a server has a remedy."""
    return cell["verdict"] == "not-run" and not cell.get("remedy") and not was_stopped(cell)


def remarks(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each cell that contradicts its claim or decides nothing.

    A third-party lock gets one for each failure, claimed or not: that is what its author came for.
    """
    told = []
    for each in results:
        where = f"{each['strategy']} × {each['hazard']}"
        if each["agrees"] is False:
            told.append(f"{where}: claims to withstand it, but is {each['verdict']}: {each['cause']}")
        elif each["verdict"] == "inconclusive":
            told.append(f"{where}: inconclusive: {each['cause']}. Remedy: {each['remedy']}.")
        elif ":" in each["strategy"] and each["verdict"] not in ("kept", "not-run"):
            told.append(f"{where}: {each['verdict']}: {each['cause']}. Again: {each['command']}")
    return told


def context(report: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the part of faults.json that the page shows: the matrix, and the evidence of each cell."""
    if not report:
        return None
    results = [
        {
            **each,
            **_drawn(each),
            "id": f"{each['strategy']}-{each['hazard']}",
            "not_applicable": not_applicable(each),
        }
        for each in report["results"]
    ]
    hazards = list(dict.fromkeys(each["hazard"] for each in results))
    lines = [
        {"strategy": strategy, "cells": [cells.get(hazard) for hazard in hazards]}
        for strategy, cells in rows(results).items()
    ]
    shown = [each for each in results if each["verdict"] != "not-run"]
    return {"hazards": hazards, "rows": lines, "cells": shown}


def _drawn(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shown loss of a cell, and its drawing with the fault. {} if nothing was lost."""
    if not (name := cell.get("shown_loss")):
        return {}
    drawing = timeline.svg(put_right(cell, name), moments(cell))
    return {"loss": cell[name], "drawn": mark_safe(drawing)}  # noqa: S308  (ElementTree escapes)
