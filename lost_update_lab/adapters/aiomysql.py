"""Everything private that the gates use of aiomysql. Nothing else in this package names any of it.

aiomysql is PyMySQL with its socket's reads awaited: the same packets, converters and errors. So a worker's connection
has a twin of PyMySQL's, which talks to the server in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
from aiomysql.connection import Connection

from lost_update_lab.adapters import pymysql as twins
from lost_update_lab.adapters.versions import Library, Names

#: aiomysql's own, without a gate
connect: Any = Connection._connect
close: Any = Connection.close
ensure_closed: Any = Connection.ensure_closed
ping: Any = Connection.ping
send: Any = Connection._execute_command
ensure_open: Any = Connection._ensure_alive
#: the methods that a twin does, under the same names
methods: dict[str, Callable[..., Any]] = {name: getattr(Connection, name) for name in twins.methods}

Connection._writer = None  # its finalizer asks for it, also where a constructor was cut off
CONNECT, SEND, ENSURE_OPEN = "_connect", "_execute_command", "_ensure_alive"
#: what both connections are made with, under the same names; the first ones have an underscore in aiomysql
_HIDDEN = ("host", "port", "user", "password", "unix_socket", "charset")
_SHOWN = ("use_unicode", "client_flag", "sql_mode", "init_command")
_GIVEN = (*(f"_{name}" for name in _HIDDEN), *_SHOWN, "_db", "autocommit_mode")
#: what the server has said in the handshake
_TOLD = ("protocol_version", "server_version", "server_thread_id", "server_status", "server_charset")
LIBRARY = Library(
    "aiomysql",
    "aiomysql",
    ("0.3",),
    [
        Names(Connection, (CONNECT, SEND, ENSURE_OPEN, twins.AUTOCOMMIT)),
        Names(
            Connection,
            (
                "_reader",
                "_writer",
                "_result",
                "_affected_rows",
                "encoders",
                "decoders",
                "_ssl_context",
                *_GIVEN,
                *_TOLD,
            ),
        ),
        Names(Connection.query, ("sql", "unbuffered")),
    ],
)


class _Reader:
    """In place of the socket's: aiomysql's pool asks whether the server has closed the connection."""

    eof_received = False

    def at_eof(self) -> bool:
        return False

    def exception(self) -> None:
        return None


class _Writer:
    """Nothing is written to it, and nothing of its own is to be closed when it is forgotten: so it is false."""

    def __bool__(self) -> bool:
        return False


def twin_of(connection: Any) -> Any:
    """The connection that talks in its place. None: it was not made by a worker."""
    return vars(connection).get("explorer_twin")


def new_twin(connection: Any) -> Any:
    """One that is not connected yet."""
    given = {name: getattr(connection, f"_{name}") for name in _HIDDEN}
    given |= {name: getattr(connection, name) for name in _SHOWN}
    given |= {"database": connection._db, "autocommit": connection.autocommit_mode}
    given |= {"conv": {**connection.encoders, **connection.decoders}}
    given |= {"ssl": connection._ssl_context} if connection._ssl_context else {"ssl_disabled": True}
    return pymysql.Connection(**given, defer_connect=True)


def adopt(connection: Any, twin: Any) -> None:
    """From now on the connected twin talks in place of the connection, which appears open."""
    connection.explorer_twin, connection._reader, connection._writer = twin, _Reader(), _Writer()
    connection._result = None
    for name in _TOLD:
        setattr(connection, name, getattr(twin, name))


def is_open(connection: Any) -> bool:
    return connection._writer is not None


def wish(connection: Any, twin: Any) -> None:
    """The twin sets the autocommit mode that was asked for."""
    twin.autocommit_mode = connection.autocommit_mode


def forget_answer(connection: Any) -> None:
    connection._result = None


def take_answer(connection: Any, twin: Any, name: str) -> None:
    """The connection has heard what its twin has. PyMySQL's twin asks whether it is inside a transaction; aiomysql only
    knows what an answer without rows has said."""
    result = twin._result
    if name == twins.QUERY:
        connection._result, connection._affected_rows = result, result.affected_rows
    if name != twins.WARNINGS and (name != twins.QUERY or result.server_status is not None):
        connection.server_status = twin.server_status


def cut(connection: Any) -> None:
    """The connection is closed, as aiomysql does when it hears nothing more of the server."""
    connection._reader = connection._writer = None


def number(connection: Any) -> int:
    """The server's number for this connection."""
    return int(connection.server_thread_id[0])
