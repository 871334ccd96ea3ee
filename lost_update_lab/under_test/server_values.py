"""Rows without what the server has written by itself. An answer that is known from another run may hold other keys than
these rows: so no key of the server's is identified by its value.
"""

from __future__ import annotations

from typing import Any

from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.snapshot.tables import TableRows
from lost_update_lab.under_test.fresh import NOW, RANDOM


def without_server_values(rows: TableRows, by_server: ByServer) -> dict[Table, list[dict[str, Any]]]:
    """A key by which rows refer to a new row becomes its number here: it is known by that row, as one from a sequence
    is."""
    numbers: dict[str, str] = {}

    def told(table: Table, name: str, value: Any) -> Any:
        kind = by_server.columns.get((table.title, name), "")
        if not kind or not by_server.has_written(kind, value):
            return value
        if kind != "uuid":
            return NOW
        if name == table.surrogate or name in dict(table.refers):
            return numbers.setdefault(str(value), f"row {len(numbers)}")
        return RANDOM

    return {
        table: [{name: told(table, name, value) for name, value in row.items()} for row in of]
        for table, of in rows.items()
    }
