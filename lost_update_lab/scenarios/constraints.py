"""The constraints of tables, each with how it is dropped and how it is added again.

A primary key takes the foreign keys that refer to it along. On MariaDB an index of the same columns stands in for it:
foreign keys and AUTO_INCREMENT ask for one, and locks of rows are taken in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

_POSTGRES = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), true, conindid, contype = 'p', conrelid
FROM pg_constraint WHERE conrelid = ANY(%(tables)s) AND contype IN ('p', 'u', 'c', 'x')
UNION ALL SELECT indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid), false, NULL, false,
    indrelid
FROM pg_index i WHERE indrelid = ANY(%(tables)s) AND indisunique AND NOT indisprimary
AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)
ORDER BY 1, 2
"""
_REFERRING = """
SELECT conindid, conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE confrelid = ANY(%(tables)s) AND contype = 'f' AND conparentid = 0
"""
#: lines of MariaDB's SHOW CREATE TABLE
_PRIMARY = re.compile(r"PRIMARY KEY (?P<columns>\(.*\)).*", re.IGNORECASE)
_UNIQUE = re.compile(r"UNIQUE KEY `(?P<name>[^`]+)`.*", re.IGNORECASE)
_CHECK = re.compile(r"CONSTRAINT `(?P<name>[^`]+)` CHECK .*", re.IGNORECASE)
_OF_COLUMN = re.compile(r"(?P<column>`(?P<name>[^`]+)` .*?) CHECK \(.*", re.IGNORECASE)
#: the index in the place of a primary key
_STANDS_IN = "explorer_key"


@dataclass(frozen=True, slots=True)
class Constraint:
    """`drop` and `add` are statements. `key_of`: the oid of the table, if it is a primary key."""

    title: str
    drop: str
    add: str
    key_of: int | None = None

    @contextmanager
    def dropped(self, run: Callable[[str], object], restore: Callable[[], None]) -> Iterator[None]:
        """In this block the constraint does not exist. `restore`: undoes what was written without it."""
        run(self.drop)
        try:
            yield
        finally:
            restore()
            run(self.add)


def of_postgres(session: psycopg.Connection[Any], oids: Collection[int]) -> Iterator[Constraint]:
    """Those of these tables, also the unique indexes."""
    rows = session.cursor(row_factory=tuple_row)
    of = {"tables": list(oids)}
    found, referring = rows.execute(_POSTGRES, of).fetchall(), rows.execute(_REFERRING, of).fetchall()
    for table, name, definition, named, index, is_key, oid in found:
        if named:
            every = [
                (table, name, definition),
                *(each[1:] for each in referring if index and each[0] == index),
            ]
            added = "; ".join(_altered(at, f"ADD CONSTRAINT {{}} {made}", each) for at, each, made in every)
            drop = _altered(table, "DROP CONSTRAINT {} CASCADE", name)
            yield Constraint(f"{table}: {name}", drop, added, oid if is_key else None)
        else:
            yield Constraint(f"{table}: {definition}", f"DROP INDEX {name}", definition)


def _altered(table: str, how: str, name: str) -> str:
    return f"ALTER TABLE {table} {how.replace('{}', sql.Identifier(name).as_string(), 1)}"


def of_mariadb(run: Callable[[str], Sequence[Any]], tables: Mapping[int, str]) -> Iterator[Constraint]:
    """Also the checks of single columns. `tables`: their names. `run`: executes a statement and returns its rows."""
    for oid, table in tables.items():
        ((_, created),) = run(f"SHOW CREATE TABLE `{table}`")
        alter = f"ALTER TABLE `{table}`"
        for line in created.splitlines()[1:-1]:
            each = line.strip().removesuffix(",")
            if found := _PRIMARY.fullmatch(each):
                drop = f"{alter} DROP PRIMARY KEY, ADD INDEX {_STANDS_IN} {found['columns']}"
                add = f"{alter} DROP INDEX {_STANDS_IN}, ADD {each}"
                yield Constraint(f"{table}: the primary key", drop, add, oid)
            elif found := _UNIQUE.fullmatch(each):
                title = f"{table}: {found['name']}"
                yield Constraint(title, f"{alter} DROP INDEX `{found['name']}`", f"{alter} ADD {each}")
            elif found := _CHECK.fullmatch(each):
                title = f"{table}: {found['name']}"
                yield Constraint(title, f"{alter} DROP CONSTRAINT `{found['name']}`", f"{alter} ADD {each}")
            elif found := _OF_COLUMN.fullmatch(each):
                title = f"{table}: the check of {found['name']}"
                yield Constraint(title, f"{alter} MODIFY {found['column']}", f"{alter} MODIFY {each}")
