"""How long a session may stand idle, or a transaction last: PostgreSQL ends it then, and frees what it holds.

    A: SELECT … FOR UPDATE; stands still for longer than idle_in_transaction_session_timeout
       PostgreSQL ends A's session
    B: locks the same row, and writes

They come from the connection's options, the role or the database, and go by the server's own clock. During a search the
session has none of them. A schedule in which one would have ended the session proves nothing, so the search ends there.
"""

from __future__ import annotations

from typing import Any

from psycopg.pq import ExecStatus, TransactionStatus

from lost_update_lab.model.errors import Broken

IDLE_INSIDE, IDLE, WHOLE = (
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
)
ENDS_A_SESSION = "PostgreSQL would end a session by its {limit} of {seconds:g} s, and no schedule does so"
WITHOUT_LIMIT = (
    "open the connection without that limit (options='-c idle_in_transaction_session_timeout=0'). What becomes of a "
    "transaction whose session is ended is tried by crashes=1"
)
_LOOK = """
SELECT name, setting FROM pg_settings WHERE setting <> '0'
AND name IN ('idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')
"""


def begins_at(connection: Any) -> bool:
    """Before the first command of a session, outside of a transaction. Does it have such limits?"""
    if not hasattr(connection, "explorer_ends_after"):
        found = connection.pgconn.exec_(_LOOK.encode())  # by libpq itself, which passes no gate
        rows = range(found.ntuples) if found.status == ExecStatus.TUPLES_OK else ()
        limits = {found.get_value(row, 0).decode(): int(found.get_value(row, 1)) for row in rows}
        connection.explorer_ends_after, connection.explorer_stood = limits, None
        if limits:
            connection.pgconn.exec_("; ".join(f"SET {name} = 0" for name in limits).encode())
    return bool(connection.explorer_ends_after)


def of_a_pause(connection: Any) -> Broken:
    """Others would come while a worker stands still."""
    return _ended_by(connection.explorer_ends_after, min(connection.explorer_ends_after))


def answered(connection: Any, now: int) -> None:
    """Its command has ended. `now`: in virtual time (µs)."""
    if getattr(connection, "explorer_ends_after", None):
        began, _ = connection.explorer_stood or (now, now)
        idle = connection.closed or connection.pgconn.transaction_status == TransactionStatus.IDLE
        connection.explorer_stood = (now if idle else began), now


def passed(connection: Any, now: int) -> Broken | None:
    """Would one of them have ended the session by `now`, at which it sends its next command?"""
    limits, stood = (
        getattr(connection, "explorer_ends_after", None),
        getattr(connection, "explorer_stood", None),
    )
    if not limits or not stood or connection.closed:
        return None
    began, last = stood
    inside = connection.pgconn.transaction_status != TransactionStatus.IDLE
    times = {IDLE_INSIDE: now - last, WHOLE: now - began} if inside else {IDLE: now - last}
    over = [name for name, time in times.items() if name in limits and time >= limits[name] * 1000]
    return _ended_by(limits, over[0]) if over else None


def forget(connection: Any) -> None:
    """After a run."""
    connection.explorer_stood = None


def _ended_by(limits: dict[str, int], limit: str) -> Broken:
    return Broken(ENDS_A_SESSION.format(limit=limit, seconds=limits[limit] / 1000), WITHOUT_LIMIT)
