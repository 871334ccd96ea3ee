"""Prepared statements on Django's own connection: the server parses and plans a hot statement once a session.

Django binds parameters into the text, so that each call is a new text to parse and to plan. This cursor sends the
text once, then only its name and the parameters; transactions, `execute_wrapper` and Django's errors stay as they
are. Behind a pooler that gives each transaction another session, the pooler must know prepared statements
(PgBouncer from 1.21 on does, with max_prepared_statements).
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper


class _Prepared(psycopg.Cursor[Any]):
    """Not Django's cursor class, which binds on the client's side."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> _Prepared:
        return super().execute(query, params, **{"prepare": True, **options})


def prepared(connection: BaseDatabaseWrapper) -> CursorWrapper:
    """Return the connection's cursor for statements with the same text each time; only PostgreSQL has it.

    It stays with the connection (a new one costs a tenth of a posting): fetch at once, and do not close it.
    """
    connection.close_if_health_check_failed()  # as Django's own cursor() begins
    connection.ensure_connection()
    held: CursorWrapper | None = connection.__dict__.get("prepared_cursor")
    if held is None or held.cursor.connection is not connection.connection or held.cursor.closed:
        connection.connection.prepare_threshold = 1  # Django's None forbids it, even to who asks for it
        held = connection.make_cursor(_Prepared(connection.connection))
        connection.__dict__["prepared_cursor"] = held
    return held
