"""bench.json: the results of each part of the bench. A part replaces only its own results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadtest.bench.measured import Measured, Row
from loadtest.trials import records


def write(part: str, found: Measured, goals: Sequence[Row], file: Path) -> dict[str, Any]:
    """Merge the results, goals and notes of one part into `file`, and return the whole contents."""
    before = _read(file)
    whole: dict[str, Any] = {"environment": found.environment}
    for key, rows in (("results", found.results), ("goals", goals)):
        kept = [row for row in before.get(key, []) if row.get("bench") != part]
        whole[key] = kept + [{"bench": part, **row} for row in rows]
    notes = [*found.notes, *([found.warning] if found.warning else [])]
    whole["notes"] = {**before.get("notes", {}), part: notes}
    records.write(whole, file)
    return whole


def _read(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found
