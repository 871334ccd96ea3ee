"""Everything private that the gates use of PyMySQL. Nothing else in this package names any of it."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND, SERVER_STATUS

from lost_update_lab.adapters.versions import Library, Names

#: PyMySQL's own, without a gate: what sends each command, and what calls it
send: Any = Connection._execute_command  # type: ignore[attr-defined]
connect: Any = Connection.connect
close: Any = Connection.close
ping: Any = Connection.ping
QUERY, BEGIN, COMMIT, ROLLBACK, WARNINGS = "query", "begin", "commit", "rollback", "show_warnings"
AUTOCOMMIT = "_send_autocommit_mode"
methods: dict[str, Callable[..., Any]] = {
    name: getattr(Connection, name) for name in (QUERY, BEGIN, COMMIT, ROLLBACK, WARNINGS, AUTOCOMMIT)
}

SEND = "_execute_command"
LIBRARY = Library(
    "PyMySQL",
    "PyMySQL",
    ("1.2",),
    [
        Names(Connection, (SEND, AUTOCOMMIT, "_read_ok_packet", "_read_query_result", "_force_close")),
        Names(Connection, ("_sock", "_rfile", "_result", "_closed", "server_status", "autocommit_mode")),
        Names(Connection, ("_read_timeout", "_current_timeout")),
        Names(Connection._execute_command, ("command", "sql")),  # type: ignore[attr-defined]
        Names(Connection.query, ("sql", "unbuffered")),
    ],
)
_RESET = 0x1F  # COM_RESET_CONNECTION


def is_open(connection: Any) -> bool:
    return connection._sock is not None


def inside(connection: Any) -> bool:
    """Is it inside a transaction? The server has said so with its last answer."""
    return bool(connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)


def commits_by_itself(connection: Any) -> bool:
    return bool(connection.server_status & SERVER_STATUS.SERVER_STATUS_AUTOCOMMIT)


def wishes_autocommit(connection: Any) -> bool:
    """The value that `_send_autocommit_mode` is about to set."""
    return bool(connection.autocommit_mode)


def has_answered(connection: Any, within_ms: int | None) -> bool:
    poller = select.poll()
    poller.register(connection._sock, select.POLLIN)
    return bool(poller.poll(within_ms))


def ask(connection: Any, text: str) -> None:
    """Send a statement of a worker. Its answer is read by `heard`."""
    send(connection, COMMAND.COM_QUERY, text)


def heard(connection: Any, name: str) -> Any:
    """The answer is there: what the method of this name does with it. It sends nothing (`has_asked`)."""
    connection.explorer_asked = True
    try:
        return methods[name](connection, *([""] if name == QUERY else []))
    finally:
        connection.explorer_asked = False


def has_asked(connection: Any) -> bool:
    """Was the statement sent already that a method is about to send?"""
    return bool(getattr(connection, "explorer_asked", False))


def run(connection: Any, text: str) -> tuple[tuple[Any, ...], ...]:
    """Execute the statement past the gates and return its rows. Raises pymysql.Error."""
    send(connection, COMMAND.COM_QUERY, text)
    connection._read_query_result()
    return tuple(connection._result.rows or ())


def hear_out(connection: Any) -> None:
    """Read the server's answer to a command that was interrupted."""
    with suppress(pymysql.Error):  # interrupted
        connection._read_query_result()
    look(connection)


def look(connection: Any) -> None:
    """Ask whether it is inside a transaction: errors do not say so, and PyMySQL does not read it from rows."""
    if is_open(connection):
        with keeps_answer(connection):
            send(connection, COMMAND.COM_PING, "")
            connection._read_ok_packet()


@contextmanager
def keeps_answer(connection: Any) -> Iterator[None]:
    """What is sent meanwhile leaves the last answer as it is."""
    result, connection._result = connection._result, None
    try:
        yield
    finally:
        connection._result = result


def begin_again(connection: Any) -> None:
    """Make the session forget its variables, its temporary tables, its transaction and its locks."""
    send(connection, _RESET, "")
    connection._read_ok_packet()


def answer(connection: Any) -> tuple[Any, ...]:
    """The last answer: rows written, the last number given, warnings, rows read."""
    result = connection._result
    if result is None:
        return ()
    return result.affected_rows, result.insert_id, result.warning_count, result.rows


def written(connection: Any) -> int:
    """How many rows the last command has inserted, changed or deleted. 0: it has returned rows."""
    result = connection._result
    return int(result.affected_rows or 0) if result is not None and result.rows is None else 0


def take_away(connection: Any) -> tuple[Any, ...]:
    """From now on the connection appears closed. Returns what `give_back` needs."""
    kept = connection._sock, connection._rfile, connection.server_status
    connection._sock = connection._rfile = connection._result = None
    return kept


def give_back(connection: Any, kept: tuple[Any, ...]) -> None:
    connection._sock, connection._rfile, connection.server_status = kept
    connection._closed, connection._result = False, None


def reads_for_ever(connection: Any) -> float | None:
    """From now on it waits for each answer for ever. Returns for how many seconds it did until now."""
    reads: float | None = connection._read_timeout
    connection._read_timeout = None
    return reads


def hand_over(connection: Any, reads: float) -> Any:
    """A connection that has its session, and all that the gates know of it. This one is closed, as by a read time-out
    of so many seconds, and known by nobody."""
    left = copy(connection)
    take_away(connection)
    connection._read_timeout = reads
    for name in [name for name in vars(connection) if name.startswith("explorer_")]:
        delattr(connection, name)
    return left


def needs_no_session(connection: Any) -> bool:
    """It has handed its session over. Was it closed by its user since, or connected again?"""
    return bool(connection._closed) or is_open(connection)


def hand_back(left: Any, connection: Any) -> Any:
    """Undo that, if the client has not connected again. Returns the connection that has the session now."""
    if is_open(connection):
        close(left)
        return left
    give_back(connection, take_away(left))
    connection._read_timeout = None
    vars(connection).update(
        {name: value for name, value in vars(left).items() if name.startswith("explorer_")}
    )
    return connection


def wish_autocommit(connection: Any, on: bool) -> None:
    connection.autocommit_mode = on


def number(connection: Any) -> int:
    """The server's number for this connection."""
    return int(connection.server_thread_id[0])


def database(connection: Any) -> str:
    """Its name; "": none."""
    name = connection.db or ""
    return name.decode() if isinstance(name, bytes) else str(name)


def address(connection: Any) -> str:
    return str(connection.unix_socket or f"{connection.host}:{connection.port}")
