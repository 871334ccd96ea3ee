"""bench.json: what each part of the bench measured. Each part replaces its own and leaves the others'."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from loadtest import records

BUSY = 0.5  # of the cores, by the load average of the last minute


def write(part: str, measured: dict[str, Any], environment: dict[str, Any], file: Path) -> dict[str, Any]:
    """Merge `results`, `goals` and `notes` of one part into `file`; return the whole."""
    before = _read(file)
    whole: dict[str, Any] = {"environment": environment}
    for key in ("results", "goals"):
        kept = [row for row in before.get(key, []) if row.get("bench") != part]
        whole[key] = kept + [{"bench": part, **row} for row in measured[key]]
    whole["notes"] = {**before.get("notes", {}), part: measured["notes"]}
    records.write(whole, file)
    return whole


def _read(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found


def busy() -> list[str]:
    """Say that others use this machine, if they do: then the figures are theirs too."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load < BUSY * cores:
        return []
    return [
        f"the machine was busy before the run: load average {load:.1f} on {cores} cores; run it again alone"
    ]
