"""What the database server says about a worker's session: who it is, whether it is blocked, and its end."""

from __future__ import annotations

from typing import Any

from django.db import OperationalError, connections

BLOCKED = {
    # by a client: autovacuum holds a table for a moment when it gives back empty pages
    "postgresql": "SELECT EXISTS (SELECT FROM pg_stat_activity "
    "WHERE pid = ANY (pg_blocking_pids(%s)) AND backend_type = 'client backend')",
    # InnoDB's row locks, and the user locks of GET_LOCK
    "mysql": "SELECT COUNT(*) > 0 FROM information_schema.processlist p LEFT JOIN information_schema.innodb_trx t "
    "ON t.trx_mysql_thread_id = p.id WHERE p.id = %s AND (t.trx_state = 'LOCK WAIT' OR p.state = 'User lock')",
}
#: seconds between two questions: InnoDB answers from a cache that it renews only after 0.1 s without one
PAUSE = {"default": 0.01, "mariadb": 0.12}
UNKNOWN = 1094  # MariaDB's number of that error
END = {"postgresql": "SELECT pg_terminate_backend(%s)", "mysql": "KILL CONNECTION %s"}


def session_of(connection: Any) -> int:
    """Return the server's id of this connection's session."""
    if connection.vendor == "postgresql":
        return connection.connection.info.backend_pid
    return connection.connection.thread_id()


def is_blocked(alias: str, session: int | None) -> bool:
    """Does the session wait for a lock that another session holds?"""
    return session is not None and bool(_ask(alias, BLOCKED, session))


def waiting_for(session: int) -> list[int]:
    """Return the sessions of PostgreSQL that wait for a lock which this one holds."""
    with connections["default"].cursor() as cursor:
        waiting = "SELECT DISTINCT pid FROM pg_locks WHERE NOT granted AND %s = ANY (pg_blocking_pids(pid))"
        cursor.execute(waiting, [session])
        return [pid for (pid,) in cursor.fetchall()]


def end_session(alias: str, session: int | None) -> None:
    """End the session as the death of its client would: its transaction is rolled back. One that has ended by itself is
    unknown to MariaDB."""
    if session is not None:
        try:
            _ask(alias, END, session)
        except OperationalError as error:
            if error.args[0] != UNKNOWN:
                raise


def _ask(alias: str, statements: dict[str, str], session: int) -> Any:
    with connections[alias].cursor() as cursor:
        cursor.execute(statements[connections[alias].vendor], [session])
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None
