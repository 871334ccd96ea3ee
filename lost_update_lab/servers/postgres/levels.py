"""The isolation level of transactions that do not ask for one: what a session has, and what the search gives it.

It is the session's own default, and not a part of BEGIN. So it holds for whoever sends the BEGIN: psycopg, its asyncio
form, or the user's own text. And for a command that is a transaction by itself.
"""

from __future__ import annotations

import re
from typing import Any

from psycopg import IsolationLevel
from psycopg.pq import ExecStatus, TransactionStatus

from lost_update_lab.servers.postgres.transactions import NOT_STRICT

#: the session forgets what it was told
_FORGETS = re.compile(r"\s*(?:RESET|DISCARD)\b", re.IGNORECASE)


def default_of(connection: Any) -> IsolationLevel | None:
    """The isolation that its session gives a transaction by itself. None: PostgreSQL's own."""
    if not hasattr(connection, "explorer_level"):
        name = _shown(connection).upper().replace(" ", "_")
        level = IsolationLevel[name] if name else None
        connection.explorer_level = None if level in NOT_STRICT else level
    level = connection.explorer_level
    return level if isinstance(level, IsolationLevel) else None


def of(connection: Any, usual: IsolationLevel | None) -> IsolationLevel | None:
    """The isolation of its next transaction. `usual`: where it asks for none. None: PostgreSQL's own."""
    if found := connection.isolation_level or usual:
        level: IsolationLevel = found
        return level
    options = connection.pgconn.options.lower() if not connection.closed else b""
    return default_of(connection) if b"isolation" in options else None


def begins_at(connection: Any, level: IsolationLevel | None, text: str) -> None:
    """Before a command `text`: until the end of the run its transactions begin at this level, if they do not ask for
    one. None: at their own."""
    if level is None or connection.closed:
        return
    known = getattr(connection, "explorer_default", "")
    if connection.pgconn.transaction_status == TransactionStatus.IDLE and not (
        known and connection.explorer_keeps_level
    ):
        connection.explorer_default = known or _shown(connection)
        _set(connection, level.name.replace("_", " "))
        connection.explorer_keeps_level = True
    if _FORGETS.match(text):
        connection.explorer_keeps_level = False


def put_back(connection: Any) -> None:
    """After a run: the session has the level that it had before."""
    if before := getattr(connection, "explorer_default", ""):
        _set(connection, before)
        connection.explorer_default = ""


def _shown(connection: Any) -> str:
    found = connection.pgconn.exec_(
        b"SHOW default_transaction_isolation"
    )  # by libpq itself, which passes no gate
    return (found.get_value(0, 0) or b"").decode()


def _set(connection: Any, name: str) -> None:
    done = connection.pgconn.exec_(f"SET default_transaction_isolation = '{name}'".encode())
    if done.status != ExecStatus.COMMAND_OK:
        raise RuntimeError(f"the isolation level: {done.error_message}")
