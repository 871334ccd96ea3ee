"""The page's part of bench.json: each goal with its measured value, and how cost grows."""

from __future__ import annotations

from typing import Any

from django.utils.safestring import mark_safe

from loadtest.report import growth


def context(bench: dict[str, Any] | None) -> dict[str, Any] | None:
    if bench is None:
        return None
    drawn = growth.drawings(bench.get("results", []))
    return {
        "goals": bench.get("goals", []),
        "notes": [note for notes in bench.get("notes", {}).values() for note in notes],
        "drawings": [(each.about, mark_safe(each.svg)) for each in drawn],  # noqa: S308  (our own drawing)
    }
