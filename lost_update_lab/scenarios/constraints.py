"""The constraints of tables, each with how it is dropped and how it is added again: primary keys are not among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from lost_update_lab.snapshot.catalogue import Table

_POSTGRES = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), true FROM pg_constraint
WHERE conrelid = ANY(%(tables)s) AND contype IN ('u', 'c', 'x')
UNION ALL SELECT indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid), false
FROM pg_index i WHERE indrelid = ANY(%(tables)s) AND indisunique AND NOT indisprimary
AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)
ORDER BY 1, 2
"""
#: lines of MariaDB's SHOW CREATE TABLE
_UNIQUE = re.compile(r"UNIQUE KEY `(?P<name>[^`]+)`.*", re.IGNORECASE)
_CHECK = re.compile(r"CONSTRAINT `(?P<name>[^`]+)` CHECK .*", re.IGNORECASE)
_OF_COLUMN = re.compile(r"(?P<column>`(?P<name>[^`]+)` .*?) CHECK \(.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Constraint:
    """`drop` and `add` are statements."""

    title: str
    drop: str
    add: str

    @contextmanager
    def dropped(self, run: Callable[[str], object], restore: Callable[[], None]) -> Iterator[None]:
        """In this block the constraint does not exist. `restore`: undoes what was written without it."""
        run(self.drop)
        try:
            yield
        finally:
            restore()
            run(self.add)


def of_postgres(session: psycopg.Connection[Any], tables: Iterable[Table]) -> Iterator[Constraint]:
    """Also the unique indexes."""
    found = session.execute(_POSTGRES, {"tables": [each.oid for each in tables]}).fetchall()
    for table, name, definition, named in found:
        quoted = sql.Identifier(name).as_string()
        if named:
            drop, add = f"DROP CONSTRAINT {quoted}", f"ADD CONSTRAINT {quoted} {definition}"
            yield Constraint(f"{table}: {name}", f"ALTER TABLE {table} {drop}", f"ALTER TABLE {table} {add}")
        else:
            yield Constraint(f"{table}: {definition}", f"DROP INDEX {name}", definition)


def of_mariadb(
    run: Callable[[str], tuple[tuple[Any, ...], ...]], tables: Iterable[Table]
) -> Iterator[Constraint]:
    """Also the checks of single columns. `run`: executes a statement and returns its rows."""
    for table in tables:
        ((_, created),) = run(f"SHOW CREATE TABLE `{table.name}`")
        alter = f"ALTER TABLE `{table.name}`"
        for line in created.splitlines()[1:-1]:
            each = line.strip().removesuffix(",")
            if found := _UNIQUE.fullmatch(each):
                title = f"{table.name}: {found['name']}"
                yield Constraint(title, f"{alter} DROP INDEX `{found['name']}`", f"{alter} ADD {each}")
            elif found := _CHECK.fullmatch(each):
                title = f"{table.name}: {found['name']}"
                yield Constraint(title, f"{alter} DROP CONSTRAINT `{found['name']}`", f"{alter} ADD {each}")
            elif found := _OF_COLUMN.fullmatch(each):
                title = f"{table.name}: the check of {found['name']}"
                yield Constraint(title, f"{alter} MODIFY {found['column']}", f"{alter} MODIFY {each}")
