"""A prepared statement that is sent without waiting for its result. Meanwhile the owner hears its callers.

It goes through libpq (`psycopg.pq`) on Django's own connection, because Django and psycopg's cursors would hold the
thread until the commit is on disk. Nothing else may use the connection in the meantime.
"""

from __future__ import annotations

from collections.abc import Sequence
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

import psycopg
from django.db import connections
from psycopg.pq import DiagnosticField, ExecStatus


class Statement:
    """`text` with $1, $2, …. Its result is one row with one number."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name.encode(), text.encode()
        self.session: Any = None

    def send(self, values: Sequence[str]) -> int:
        """Send it in one transaction of its own. Returns the file descriptor that becomes readable when there is
        something to `result`. Raises psycopg.Error."""
        wrapper = connections["default"]  # not the proxy, which costs more at each attribute
        wrapper.ensure_connection()
        self.session = pgconn = wrapper.connection.pgconn
        known: dict[Any, Any] = wrapper.__dict__
        if known.get(self.text) is not pgconn:
            _checked(pgconn.prepare(self.name, self.text))
            known[self.text] = pgconn
        pgconn.send_query_prepared(self.name, [value.encode() for value in values])
        if pgconn.flush():
            _push(pgconn)
        return int(pgconn.socket)

    def result(self) -> int | None:
        """Return the number, or None if there is none yet. Raises the psycopg.Error of the SQLSTATE."""
        pgconn = self.session
        pgconn.consume_input()
        if pgconn.is_busy():
            return None
        results = []
        while (
            result := pgconn.get_result()
        ) is not None:  # an error of the commit itself comes after the row
            results.append(result)
        numbers = [int(_checked(each).get_value(0, 0)) for each in results]
        return numbers[0] if numbers else None


def _push(pgconn: Any) -> None:
    """Send the rest of a large group, which the socket could not take at once."""
    with DefaultSelector() as selector:
        selector.register(pgconn.socket, EVENT_READ | EVENT_WRITE)
        while True:
            selector.select()
            pgconn.consume_input()
            if not pgconn.flush():
                return


def _checked(result: Any) -> Any:
    if result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        return result
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    message = (result.error_message or b"").decode(errors="replace").strip()
    try:
        kind: type[psycopg.Error] = psycopg.errors.lookup(state)
    except KeyError:
        kind = psycopg.OperationalError
    raise kind(message)
