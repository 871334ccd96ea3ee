"""The matrix of hazards: strategies × hazards, a word in each cell, for the page; and the remarks about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.safestring import mark_safe

from ledger.reconcile import timeline
from loadtest.faults.scene.record import moments, put_right


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
    drawing = timeline.svg(put_right(cell, name), moments(cell))
    return {"loss": cell[name], "drawn": mark_safe(drawing)}  # noqa: S308  (ElementTree escapes)
