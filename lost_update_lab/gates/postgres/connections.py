"""The connections of psycopg: which sessions of the server they are, and what becomes of one that cannot be made."""

from __future__ import annotations

from typing import Any

import psycopg

from lost_update_lab.runs.place import beside, connecting
from lost_update_lab.servers.connections_before import existing

_connect: Any = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]
_made: set[int] = set()


def connect(cls: type[psycopg.Connection[Any]], *args: Any, **keywords: Any) -> psycopg.Connection[Any]:
    """The handshake is no step, and no clock that it looks at is the worker's: it is made once, and kept."""
    with connecting(), beside():
        connection: psycopg.Connection[Any] = _connect(cls, *args, **keywords)
    _made.add(connection.info.backend_pid)
    return connection


def made(look: bool = False) -> set[int]:
    """The process ids of all sessions that psycopg has in this process, or had since the gates were put up;
    `look` for those that were there before."""
    for connection in existing(psycopg.Connection) if look else ():
        if not connection.closed:
            _made.add(connection.info.backend_pid)
    return _made
