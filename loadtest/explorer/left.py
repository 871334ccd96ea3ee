"""The sessions that a process left in its databases when it ended in the middle of something.

A database notices only when it next reads from a client, or writes to it, that the client is gone. A session that is
busy, or waits, goes on, and keeps its locks.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import psycopg
import pymysql

from loadtest.servers import MariaDB

#: seconds for one session to end
ENDS_WITHIN = 10
_THERE = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
_OTHERS = "SELECT id FROM information_schema.processlist WHERE user = 'lab' AND id <> connection_id()"


def end_sessions(url: str, database: str) -> None:
    """End all sessions of this database of a PostgreSQL on this machine. `url`: of another database there. A session
    that the explorer has stopped (servers/postgres/locks.py) is continued first."""
    with psycopg.connect(url, autocommit=True) as admin:
        for (pid,) in admin.execute(_THERE, [database]).fetchall():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            admin.execute("SELECT pg_terminate_backend(%s, %s)", [pid, ENDS_WITHIN * 1000])


def end_sessions_of(server: MariaDB) -> None:
    """End all sessions of its user."""
    with server.connect(autocommit=True) as admin, admin.cursor() as cursor:
        cursor.execute(_OTHERS)
        for (number,) in cursor.fetchall():
            with suppress(pymysql.err.OperationalError):  # it has ended by itself
                cursor.execute(f"KILL {number:d}")
