"""How long a session's commands may wait for a lock, or take: lock_timeout and statement_timeout, in virtual time.

The server's own timers run in real time. So during a command both are off, and the scheduler ends its wait when the
virtual time has come. Before and after the command the session has them as the user has set them. Inside a transaction
they are lifted by SET LOCAL: the user's own settings end, or last, as they would.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

from lost_update_lab.model.commands import Op
from lost_update_lab.servers.postgres import idle_limits
from lost_update_lab.servers.postgres.clock_words import limits as speaks_of_them

_ENDS = re.compile(r"\s*(?:COMMIT|ROLLBACK|END|ABORT|RELEASE|SAVEPOINT|PREPARE)\b", re.IGNORECASE)
LOCK, STATEMENT = "lock_timeout", "statement_timeout"
#: units in which PostgreSQL shows a time, in ms
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}


class TimeLimits(NamedTuple):
    """In ms; 0: none. `local`: they are lifted until the transaction ends."""

    lock: int = 0
    statement: int = 0
    local: bool = False

    def left(self, waited: int) -> tuple[float | None, str]:
        """How many seconds a command may wait on, and which limit ends it then. `waited`: µs since it was sent.
        None: for ever."""
        found = [(self.lock / 1e3, LOCK)] if self.lock else []
        found += [(max(self.statement / 1e3 - waited / 1e6, 0.0), STATEMENT)] if self.statement else []
        return min(found, default=(None, ""))


NO_LIMITS = TimeLimits()


def lift(connection: Any, op: Op) -> TimeLimits:
    """Before a command: look at a session that is seen for the first time, and note one that is told its limits. Lifts
    those that count for this command, and returns them."""
    if connection.closed:
        return NO_LIMITS
    _know(connection, op.text)
    if not connection.explorer_limited or op.local or _ENDS.match(op.text) or speaks_of_them(op.text):
        return NO_LIMITS
    inside = connection.pgconn.transaction_status != TransactionStatus.IDLE
    found = _look(connection)._replace(local=inside)
    if found[:2] == NO_LIMITS[:2]:
        return NO_LIMITS
    _put(connection, NO_LIMITS._replace(local=inside))
    return found


def put_back(connection: Any, lifted: TimeLimits) -> None:
    """After the command. With its transaction, what was set for it has ended."""
    status = connection.pgconn.transaction_status
    inside = status != TransactionStatus.IDLE
    if (
        lifted != NO_LIMITS
        and not connection.closed
        and status != TransactionStatus.INERROR
        and lifted.local == inside
    ):
        _put(connection, lifted)


def _know(connection: Any, text: str) -> None:
    if not hasattr(connection, "explorer_limits"):
        connection.explorer_limits = _look(connection)
        connection.explorer_limited = connection.explorer_limits != NO_LIMITS
    connection.explorer_limited |= speaks_of_them(text)


def are_set(connection: Any) -> bool:
    """Was this session ever told its limits?"""
    return bool(getattr(connection, "explorer_limited", False))


def now(connection: Any) -> TimeLimits:
    """What is set in this session now."""
    return _look(connection) if are_set(connection) else NO_LIMITS


def _put(connection: Any, limits: TimeLimits) -> None:
    local = "LOCAL " if limits.local else ""
    settings = ((LOCK, limits.lock), (STATEMENT, limits.statement))
    connection.pgconn.exec_("; ".join(f"SET {local}{name} = {ms}" for name, ms in settings).encode())


def reset(connection: Any) -> None:
    """After a run: the session is as it was when it was made."""
    idle_limits.forget(connection)
    if getattr(connection, "explorer_limited", False):
        _put(connection, connection.explorer_limits)
        connection.explorer_limited = connection.explorer_limits != NO_LIMITS


def error(limit: str) -> psycopg.Error:
    """What the server would have said."""
    said = f"canceling statement due to {limit.replace('_', ' ')}"
    kind = psycopg.errors.LockNotAvailable if limit == LOCK else psycopg.errors.QueryCanceled
    return kind(said)


def _look(connection: Any) -> TimeLimits:
    return TimeLimits(_shown(connection, LOCK), _shown(connection, STATEMENT))


def _shown(connection: Any, name: str) -> int:
    """A SHOW takes no snapshot, as a SELECT would. Inside a transaction that has failed nothing counts any more."""
    result = connection.pgconn.exec_(f"SHOW {name}".encode())
    if result.status != ExecStatus.TUPLES_OK:
        return 0
    text = (result.get_value(0, 0) or b"0").decode()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return round(float(number) * _UNITS.get(text[len(number) :], 1.0))
