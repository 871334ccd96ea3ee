"""A MariaDB database after a setup, as a scenario asks for it (tables.py): its catalogue and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pymysql

from lost_update_lab.snapshot.catalogue import Column, Table
from lost_update_lab.snapshot.chance import draws
from lost_update_lab.snapshot.exact import Exact

_COLUMNS = """
SELECT table_name, column_name, data_type, is_generated = 'ALWAYS',
    extra LIKE '%auto_increment%' OR COALESCE(column_default, '') LIKE '%nextval(%',
    column_key = 'PRI', CONCAT(COALESCE(column_default, ''), ' ', extra)
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position
"""
_REFERS = """
SELECT table_name, column_name, referenced_table_name FROM information_schema.key_column_usage
WHERE table_schema = DATABASE() AND referenced_table_schema = DATABASE() AND position_in_unique_constraint = 1
"""

Run = Callable[[str], tuple[tuple[Any, ...], ...]]


class MariaDBTables:
    """`run`: executes a statement past the gates, in a session with ANSI quotes that is used for nothing else. `close`:
    closes that session. The explorer's server restores the rows (MariaDBServer)."""

    def __init__(self, run: Run, close: Callable[[], None]) -> None:
        self.run, self._close = run, close
        self._tables = tuple(_look(run))
        self._opening = self.rows(self._tables)

    @property
    def tables(self) -> tuple[Table, ...]:
        return self._tables

    def restore(self) -> None:
        """MariaDBServer.restore has done it, also when that server was closed."""

    def changed(self) -> list[Table]:
        now = self.rows(self._tables)
        return [table for table in self._tables if now[table] != self._opening[table]]

    def rows(self, tables: Sequence[Table]) -> dict[Table, list[dict[str, Any]]]:
        return {table: list(self._rows_of(table)) for table in tables}

    def _rows_of(self, table: Table) -> Iterator[dict[str, Any]]:
        names = [each.name for each in table.columns]
        order = ", ".join(f'"{name}"' for name in table.key or names)
        columns = ", ".join(f'"{name}"' for name in names)
        for row in self.run(f'SELECT {columns} FROM "{table.name}" ORDER BY {order}'):  # noqa: S608  (names of its own)
            yield {name: _plain(value) for name, value in zip(names, row, strict=True)}

    def opening(self, table: Table) -> list[dict[str, Any]]:
        return self._opening[table]

    def draw_ahead(self) -> dict[int, int]:
        return {}  # a counter of MariaDB is moved by ALTER TABLE

    def last_drawn(self) -> dict[int, int]:
        return {}

    def texts(self) -> Iterator[str]:
        return (str(value) for rows in self._opening.values() for row in rows for value in row.values())

    def versions(self, table: Table) -> list[str]:
        return []

    def value(self, query: str) -> str:
        try:
            rows = self.run(query)
        except pymysql.MySQLError as error:
            raise LookupError(str(error)) from None
        return str(rows[0][0]) if rows else ""

    def close(self) -> None:
        self._close()


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, datetime | date | time | timedelta):
        return str(value)
    if isinstance(value, Decimal):
        return Exact(value)
    return value.hex() if isinstance(value, bytes) else value


def _look(run: Run) -> Iterator[Table]:
    columns, refers = run(_COLUMNS), run(_REFERS)
    names = sorted({name for name, *_ in columns})
    for name in names:
        own = [row[1:] for row in columns if row[0] == name]
        yield Table(
            names.index(name),
            "public",
            name,
            tuple(
                Column(column, kind, bool(generated), bool(drawn), draws(text))
                for column, kind, generated, drawn, _, text in own
            ),
            tuple(column for column, *_, is_key, _ in own if is_key),
            tuple((column, names.index(to)) for of, column, to in refers if of == name and to in names),
        )
