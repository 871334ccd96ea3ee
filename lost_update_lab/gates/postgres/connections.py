"""The connections of psycopg: which server sessions they are, and what happens to one that cannot be made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import psycopg
from psycopg.pq import PGconn

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.runs.place import beside, connecting
from lost_update_lab.servers.postgres.bypass import made


def connect(cls: type[psycopg.Connection[Any]], *args: Any, **keywords: Any) -> psycopg.Connection[Any]:
    """The handshake is not a step, and no clock that it looks at is the worker's: it is made once, and kept."""
    with connecting(), beside():
        connection: psycopg.Connection[Any] = driver.connect(cls, *args, **keywords)
    made().add(connection.info.backend_pid)
    return connection


def cut(connection: Any) -> None:
    """The client finds the connection closed. It gets the connection back after the run: connecting costs more than all
    the rest of a schedule, and the end of the session was already simulated (PostgresServer.end_sessions)."""
    connection.explorer_cut, connection.pgconn = connection.pgconn, closed_connection()


def mend(sessions: Sequence[Any]) -> None:
    for connection in sessions:
        if getattr(connection, "explorer_gone", False):
            connection.pgconn.finish()
        elif real := getattr(connection, "explorer_cut", None):
            connection.explorer_cut = None
            driver.give_back(connection, real)


@cache
def closed_connection() -> Any:
    closed = PGconn.connect_start(b"")
    closed.finish()
    return closed
