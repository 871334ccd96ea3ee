"""A PostgreSQL database after a setup: what makes its contents, and how a schedule's changes are undone.

Whatever the schema is, one function in the server compares each table with its opening state by a sum over its rows.
It rewrites only the tables that a schedule has changed, and sets each sequence back to its number. Triggers and foreign
keys are disabled meanwhile. The sums are 64-bit hashes of the rows' texts: equal rows give equal sums in any order.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus

from lost_update_lab.snapshot.catalogue import OWN, Catalogue, Table, look

VACUUM_EVERY = 300  # runs: each leaves dead rows, which slow down the next ones

#: (table, column)
Names = Collection[tuple[str, str]]


class CannotBeRestored(RuntimeError):
    """The database holds something that no snapshot can restore. The message says what."""


def _sum(table: Table, left_out: Names = ()) -> sql.Composed:
    names = [each.name for each in table.columns if (table.title, each.name) not in left_out]
    row = sql.SQL(", ").join(map(sql.Identifier, names))
    text = sql.SQL(
        "(SELECT coalesce(sum(hashtextextended(ROW({})::text, 0)), 0) || '/' || count(*) FROM ONLY {})"
    )
    return text.format(row, table.quoted)


class PostgresSnapshot:
    """The database as it is now. `connection`: a superuser's, in autocommit, used for nothing else. `only`: the titles
    of the tables that a schedule may write; None: any of them."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        schema: str = OWN[1],
        only: Collection[str] | None = None,
    ) -> None:
        self.connection, self.schema = connection, schema
        there = look(connection)
        tables = tuple(each for each in there.tables if only is None or each.title in only)
        self.catalogue: Catalogue = replace(there, tables=tables)
        if found := self.catalogue.out_of_reach:
            raise CannotBeRestored(
                f"the database holds {', '.join(found)}: no snapshot puts that back. "
                "Explore in a database without it"
            )
        self._runs = 0
        self._opening: list[str] = []
        self._parts: dict[int, sql.Composed] = {}
        self._take()

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.catalogue.tables

    def contents_sql(self, left_out: Names = ()) -> str:
        """One query for all tables, which returns one row: a text that makes a state and, if columns are `left_out`, a
        second text of the tables that have them, whole."""
        partly = {title for title, _ in left_out}
        looks = [self._sums(self.tables, left_out)]
        if left_out:
            looks.append(self._sums(table for table in self.tables if table.title in partly))
        parts = [sql.SQL("concat_ws(',', {})").format(sums) for sums in looks]
        return sql.SQL("SELECT {}").format(sql.SQL(", ").join(parts)).as_string(self.connection)

    @staticmethod
    def _sums(tables: Iterable[Table], left_out: Names = ()) -> sql.Composed:
        sums: list[sql.Composable] = [_sum(table, left_out) for table in tables]
        return sql.SQL(", ").join(sums or [sql.SQL("''")])

    def _take(self) -> None:
        run = self.connection.execute
        run(
            sql.SQL("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}").format(
                sql.Identifier(self.schema)
            )
        )
        for number, table in enumerate(self.tables):
            kept = sql.Identifier(self.schema, f"opening_{number}")
            names = [each.name for each in table.columns if not each.generated]
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            run(
                sql.SQL("CREATE UNLOGGED TABLE {} AS SELECT {} FROM ONLY {}").format(
                    kept, columns, table.quoted
                )
            )
            row = run(sql.SQL("SELECT {}").format(_sum(table))).fetchone()
            assert row
            self._opening.append(row[0])
            self._parts[table.oid] = _put_back(table, kept, columns, row[0])
        self._define()
        run("SET session_replication_role = replica")
        self.connection.pgconn.prepare(b"restore", f"SELECT {self.schema}.restore()".encode())

    def _define(self) -> None:
        """Define the function that restores everything that still exists."""
        found = look(self.connection)
        there, sequences = (
            {table.oid for table in found.tables},
            {each.quoted.as_string() for each in found.sequences},
        )
        parts = [part for oid, part in self._parts.items() if oid in there]
        parts += [
            sql.SQL(
                "SELECT last_value, is_called INTO lab_last, lab_called FROM {}; "
                "IF lab_last <> {} OR lab_called <> {} THEN PERFORM setval({}::regclass, {}, {}); END IF;"
            ).format(each.quoted, each.last, each.called, each.quoted.as_string(), each.last, each.called)
            for each in self.catalogue.sequences
            if each.quoted.as_string() in sequences
        ]
        declared = "#variable_conflict use_column\nDECLARE lab_last bigint; lab_called bool; BEGIN {} END"
        body = sql.SQL(declared).format(sql.SQL(" ").join(parts))
        create = sql.SQL("CREATE OR REPLACE FUNCTION {}() RETURNS void LANGUAGE plpgsql AS {}")
        name = sql.Identifier(self.schema, "restore")
        self.connection.execute(create.format(name, body.as_string(self.connection)))

    def restore(self) -> None:
        """Restore every table and every sequence that has changed."""
        done = self.connection.pgconn.exec_prepared(b"restore", ())
        if done.error_message:
            raise RuntimeError(f"restoring the opening state: {done.error_message.decode()}")
        self._runs += 1
        if self._runs % VACUUM_EVERY == 0:
            for table in self.tables:
                self.connection.execute(sql.SQL("VACUUM {}").format(table.quoted))

    def changed(self) -> list[Table]:
        """The tables that differ from the opening state."""
        query = sql.SQL("SELECT concat_ws(',', {})").format(self._sums(self.tables))
        found = self.connection.pgconn.exec_(query.as_bytes(self.connection))
        sums = (found.get_value(0, 0) or b"").decode().split(",")
        return [
            table for table, now, was in zip(self.tables, sums, self._opening, strict=False) if now != was
        ]

    def rows(self, tables: Sequence[Table]) -> dict[Table, list[dict[str, Any]]]:
        """The rows that are committed now, read by libpq itself, which passes no gate. Values are those of JSON."""
        return {table: self._rows_of(table) for table in tables}

    def _rows_of(self, table: Table) -> list[dict[str, Any]]:
        query = sql.SQL("SELECT row_to_json(t)::text FROM ONLY {} t").format(table.quoted)
        found = self.connection.pgconn.exec_(query.as_bytes(self.connection))
        return [json.loads(found.get_value(row, 0) or b"null") for row in range(found.ntuples)]

    def versions(self, table: Table) -> list[str]:
        """For each of these rows, in the same order, the transaction that wrote it."""
        query = sql.SQL("SELECT t.xmin::text FROM ONLY {} t").format(table.quoted)
        found = self.connection.pgconn.exec_(query.as_bytes(self.connection))
        return [(found.get_value(row, 0) or b"").decode() for row in range(found.ntuples)]

    def value(self, query: str) -> str:
        """The first column of the first row. Raises LookupError with the server's words."""
        found = self.connection.pgconn.exec_(query.encode())
        if found.status != ExecStatus.TUPLES_OK:
            raise LookupError(found.error_message.decode(errors="replace").strip())
        return (found.get_value(0, 0) or b"").decode()

    def opening(self, table: Table) -> list[dict[str, Any]]:
        """The rows that existed after the setup."""
        kept = sql.Identifier(self.schema, f"opening_{self.tables.index(table)}")
        query = sql.SQL("SELECT row_to_json(t)::text FROM {} t").format(kept)
        return [json.loads(text) for (text,) in self.connection.execute(query).fetchall()]

    def drop_newer(self) -> None:
        """Drop the tables that were created since. A table that replaces another of the same name stays: the code that
        dropped the old one meant to, and no snapshot can make it again."""
        known = {table.oid for table in self.tables}
        found = look(self.connection).tables
        replaced = {table.title for table in self.tables} - {
            table.title for table in found if table.oid in known
        }
        if replaced:
            self._define()
        for table in found:
            if table.oid not in known and table.title not in replaced:
                self.connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(table.quoted))

    def close(self) -> None:
        """Remove everything that the explorer has made in the database."""
        self.connection.execute("DROP EVENT TRIGGER IF EXISTS explorer_login")
        for name in (OWN[0], self.schema):
            self.connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
        self.connection.close()


def _put_back(table: Table, kept: sql.Identifier, columns: sql.Composed, opening: str) -> sql.Composed:
    return sql.SQL(
        "IF {} <> {} THEN DELETE FROM ONLY {}; INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT * FROM {}; END IF;"
    ).format(_sum(table), opening, table.quoted, table.quoted, columns, kept)
