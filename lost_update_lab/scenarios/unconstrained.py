"""The gate that drops one constraint wherever a user's tests make its table (`explore --mutate --tests`).

Only what the tests themselves have made is changed: a table that was there before may outlive them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from lost_update_lab.gates.patch import Patches
from lost_update_lab.scenarios.constraints import Constraint, of_mariadb, of_postgres

_MAKES = re.compile(r"\b(?:CREATE|ALTER)\b", re.IGNORECASE)
_TABLES = (
    "SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace::regnamespace::text !~ '^pg_'"
)


class Unconstrained:
    """`title`: that of the constraint. `made`: it was dropped, somewhere."""

    def __init__(self, title: str) -> None:
        self.title, self.made = title, False

    def install(self, patches: Patches) -> None:
        self._install(patches, psycopg.Cursor, self._in_postgres)
        if find_spec("pymysql"):
            from pymysql.cursors import Cursor

            self._install(patches, Cursor, self._in_mariadb)

    def _install(self, patches: Patches, cursor_of: Any, find: Any) -> None:
        execute = cursor_of.execute

        def executed(cursor: Any, query: Any, *args: Any, **keywords: Any) -> Any:
            if not _MAKES.search(_text(query, cursor)):
                return execute(cursor, query, *args, **keywords)
            before = find(cursor.connection, execute)
            result = execute(cursor, query, *args, **keywords)
            if before is None and (found := find(cursor.connection, execute)):
                self.made = True
                execute(cursor.connection.cursor(), found.drop)
            return result

        patches.method(cursor_of, "execute", executed)

    def _in_postgres(self, connection: Any, execute: Any) -> Constraint | None:
        if connection.pgconn.transaction_status == TransactionStatus.INERROR:
            return None
        oids = [oid for (oid,) in execute(connection.cursor(row_factory=tuple_row), _TABLES).fetchall()]
        return next((each for each in of_postgres(connection, oids) if each.title == self.title), None)

    def _in_mariadb(self, connection: Any, execute: Any) -> Constraint | None:
        from pymysql import MySQLError
        from pymysql.cursors import Cursor

        def rows(text: str) -> Any:
            cursor = Cursor(connection)
            execute(cursor, text)
            return cursor.fetchall()

        with suppress(MySQLError):  # there is no such table
            every = of_mariadb(rows, {0: self.title.partition(": ")[0]})
            return next((each for each in every if each.title == self.title), None)
        return None


def _text(query: Any, cursor: Any) -> str:
    if isinstance(query, bytes):
        return query.decode()
    return query if isinstance(query, str) else str(query.as_string(cursor.connection))
