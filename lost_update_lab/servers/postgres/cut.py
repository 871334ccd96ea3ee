"""A connection that its client finds closed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from psycopg.pq import PGconn


def cut(connection: Any) -> None:
    """Its client finds the connection closed. It gets it back after the run: connecting costs more than all the rest
    of a schedule, and the session's end was played already (PostgresServer.end_sessions)."""
    connection.explorer_cut, connection.pgconn = connection.pgconn, _closed_connection()


def mend(sessions: Sequence[Any]) -> None:
    for connection in sessions:
        if real := getattr(connection, "explorer_cut", None):
            connection.pgconn, connection.explorer_cut, connection._closed = real, None, False


@cache
def _closed_connection() -> Any:
    closed = PGconn.connect_start(b"")
    closed.finish()
    return closed
