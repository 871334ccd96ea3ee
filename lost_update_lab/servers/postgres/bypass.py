"""Which client talks to a PostgreSQL server past the gates? A trigger at each login, and the list of sessions, tell."""

from __future__ import annotations

from collections import Counter
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn

from lost_update_lab.servers.connections_before import existing

#: an unlogged table, and a trigger that fires at every login
WATCH = b"""
CREATE SCHEMA IF NOT EXISTS explorer;
CREATE UNLOGGED TABLE IF NOT EXISTS explorer.login (pid int, client text);
TRUNCATE explorer.login;
CREATE OR REPLACE FUNCTION explorer.note_login() RETURNS event_trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO explorer.login VALUES (pg_backend_pid(), current_setting('application_name')); END $$;
DROP EVENT TRIGGER IF EXISTS explorer_login;
CREATE EVENT TRIGGER explorer_login ON login EXECUTE FUNCTION explorer.note_login();
"""
SESSIONS = """
SELECT pid, coalesce(nullif(application_name, ''), 'a client') || ' (process ' || pid || ', last: ' || left(query, 60)
    || ', ' || coalesce(query_start::text, '') || ')'
FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
"""


#: the sessions that psycopg has made in this process, or had when gates were installed, as long as they are used
_sessions: WeakSet[PGconn] = WeakSet()
#: process ids of those that were made since the gates were installed, in that order. A machine gives out its numbers
#: again, so a search asks only for those that were made since it began
_numbers: list[int] = []


class PostgresBypassDetector:
    """`admin`: the explorer's own session."""

    def __init__(self, admin: psycopg.Connection[Any]) -> None:
        self.admin = admin
        self._before: dict[int, str] = {}
        self._known: set[int] = set()
        self._begins = 0

    def watch(self) -> None:
        """Each new session records itself. For each old one, remember what it has done so far."""
        done = self.admin.pgconn.exec_(WATCH)
        if done.status != ExecStatus.COMMAND_OK:
            raise RuntimeError(f"noticing logins needs a superuser: {done.error_message.decode()}")
        _sessions.update(each.pgconn for each in existing(psycopg.BaseConnection) if not each.closed)
        self._known, self._begins = {each.backend_pid for each in _sessions if _is_open(each)}, len(_numbers)
        self._before = self._told()

    def bypassed(self) -> str:
        made = _numbers[self._begins :]
        ours, now = self._known.union(made), self._told()
        bypassing = [told for pid, told in now.items() if pid not in ours and self._before.get(pid) != told]
        logins = self.admin.execute("SELECT pid, client FROM explorer.login").fetchall()
        others = Counter(pid for pid, _ in logins) - Counter(made)
        bypassing += [f"{client or 'a client'} (process {pid})" for pid, client in logins if others[pid]]
        return f"{bypassing[0]} talked to PostgreSQL past the gates" if bypassing else ""

    def _told(self) -> dict[int, str]:
        return dict(self.admin.execute(SESSIONS).fetchall())


def note(connection: Any) -> Any:
    """psycopg has made this connection in this process, with a session of its own. Returns the connection."""
    _sessions.add(connection.pgconn)
    _numbers.append(connection.pgconn.backend_pid)
    return connection


def _is_open(session: PGconn) -> bool:
    return session.status == ConnStatus.OK
