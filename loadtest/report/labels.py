"""What a result is called in tables and charts: its strategy, and its store when the trial had several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def labels(results: Sequence[Any]) -> list[str]:
    """Return a name for each result. A control that ran on two stores must not look like one that ran twice."""
    stores = {result.get("store") for result in results} - {None}
    if len(stores) < 2:
        return [result["strategy"] for result in results]
    return [f"{result['strategy']} on {result['store']}" for result in results]
