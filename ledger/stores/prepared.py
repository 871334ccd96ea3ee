"""Prepared statements on Django's own connection: the server parses and plans a hot statement once per session.

Django binds parameters into the text, so the server has to parse and plan each call. A Prepared sends its text once
per session, and then only its name and the values. Transactions, `execute_wrapper`, health checks and Django's errors
work as usual. Like psycopg's own cursors, it sends through libpq with the connection's `wait`. It uses no cursor,
because a cursor's handling of all types of values and results took longer than everything else in the client.

A pooler that gives each transaction another session would lose them. So nothing is prepared where Django's own setting
for such poolers is on (`DISABLE_SERVER_SIDE_CURSORS`, also in DATABASE_URL): docs/scale.md. PgBouncer from 1.21 on can
follow prepared statements (`max_prepared_statements`), and then needs no setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

NAMED = re.compile(r"%\((\w+)\)s")
SUCCEEDED = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
FetchedRow = list[Any]  # bytes, or None


class Prepared:
    """A statement with %(name)s for its values, of these `types`. Values travel as PostgreSQL text, both ways."""

    def __init__(self, name: str, text: str, **types: str) -> None:
        self.names = tuple(dict.fromkeys(NAMED.findall(text)))
        numbers = {name: f"${n}::{types[name]}" for n, name in enumerate(self.names, 1)}
        self.name, self.text = name.encode(), NAMED.sub(lambda found: numbers[found[1]], text)

    def rows(self, connection: BaseDatabaseWrapper, given: Mapping[str, str]) -> list[FetchedRow]:
        """Execute the statement on Django's `connection`. Raises Django's errors."""
        connection.close_if_health_check_failed()  # as Django's own cursor() does first
        if connection.connection is None:
            connection.ensure_connection()
        if connection.needs_rollback:
            connection.validate_no_broken_transaction()
        values = [given[name] for name in self.names]
        if connection.execute_wrappers or connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
            return self._unprepared(connection, values)
        held: PreparedSession | None = connection.__dict__.get("prepared")
        if held is None or held.session is not connection.connection:
            held = connection.__dict__["prepared"] = PreparedSession(connection.connection)
        try:
            return _rows(held.execute(self, values))
        except psycopg.Error:
            with connection.wrap_database_errors:
                raise

    def _unprepared(self, connection: BaseDatabaseWrapper, values: list[str]) -> list[FetchedRow]:
        """Send text and values through a cursor, together: for a pooler, and for wrappers of Django's statements, which
        expect a cursor."""
        raw: Any = psycopg.RawCursor(connection.connection)
        with connection.make_cursor(raw) as cursor:
            cursor.execute(self.text, values)
            return _rows(cursor.pgresult)


class PreparedSession:
    """A connection to the server and its prepared statements. `pgresult`: the last result, as on a cursor."""

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        self.session = session
        self.prepared: set[bytes] = set()
        self.pgresult: PGresult | None = None

    def execute(self, statement: Prepared, values: Sequence[str]) -> PGresult:
        """Execute the statement and return its result. Raises psycopg.Error."""
        params = [value.encode() for value in values]
        if "\0" in "".join(values):  # libpq would cut the text there
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        with self.session.lock:
            self.session.wait(self._exchange(statement.text, params, statement.name))
        assert self.pgresult is not None
        return self.pgresult

    def _exchange(self, query: str, params: list[bytes], name: bytes) -> PQGen[None]:
        """Begin if necessary, prepare once, execute. `Connection.wait` drives this generator, as it does a cursor's."""
        self.pgresult = None
        session = self.session
        if not session.autocommit:  # inside atomic()
            yield from session._start_query()  # BEGIN
        pgconn = session.pgconn
        if name not in self.prepared:
            pgconn.send_prepare(name, query.encode())
            _checked((yield from generators.execute(pgconn)))
            self.prepared.add(name)
        pgconn.send_query_prepared(name, params)
        self.pgresult = _checked((yield from generators.execute(pgconn)))


def _checked(results: Sequence[PGresult]) -> PGresult:
    """Return the last result. Raises psycopg.Error."""
    for result in results:
        if result.status not in SUCCEEDED:
            raise psycopg.errors.error_from_result(result)
    return results[-1]


def _rows(result: PGresult) -> list[FetchedRow]:
    value, columns, rows = result.get_value, range(result.nfields), []
    for row in range(result.ntuples):
        rows.append([value(row, column) for column in columns])
    return rows
