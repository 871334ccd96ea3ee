"""The lost amount in a few rows: for the tab of Locust's web page, its CSV file, and the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rows(books: Mapping[str, Any], totals: Mapping[str, int]) -> list[tuple[str, Any]]:
    """Return (name, value) pairs.

    `books`: the strategy and the ledger's answer to `reconcile`, or `{"error": …}`, or nothing until a test has
    ended. `totals`: what the users counted.
    """
    if not books or "error" in books:
        return [("Books", books.get("error", "no test has ended yet"))]
    first = books.get("first_loss")
    outcomes = " / ".join(str(totals[name]) for name in ("ok", "fail", "info"))
    return [
        ("Strategy", books["strategy"]),
        ("Lost amount", books["lost_amount"]),
        ("Lost updates", books["lost_updates"]),
        ("Expected balance", books["expected"]),
        ("Final balance", books["final"]),
        ("Created amount", books["created_amount"]),
        ("Acknowledged to the users", totals["acknowledged"]),
        ("Operations ok / fail / unknown", outcomes),
        ("First loss", first["sentence"] if first else "none"),
    ]
