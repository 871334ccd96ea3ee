"""The hazards that a command was asked for."""

from __future__ import annotations

from typing import Any

from loadtest.commandline.subjects import unknown
from loadtest.faults.hazards import ADVERSARIES


def hazards(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the hazards that --hazard names, each once. Raises CommandError."""
    for name in options["hazard"]:
        if name not in ADVERSARIES:
            raise unknown("hazard", name, ADVERSARIES)
    return tuple(dict.fromkeys(options["hazard"]))
