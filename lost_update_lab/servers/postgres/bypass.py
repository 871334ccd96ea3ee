"""Which client talks to a PostgreSQL server past the gates? A trigger at each login, and the list of sessions, tell."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.pq import ExecStatus

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


#: process ids of the sessions that psycopg has made in this process since the gates were installed
_made: set[int] = set()


class PostgresBypassDetector:
    """`admin`: the explorer's own session."""

    def __init__(self, admin: psycopg.Connection[Any]) -> None:
        self.admin = admin
        self._before: dict[int, str] = {}

    def watch(self) -> None:
        """Each new session records itself. For each old one, remember what it has done so far."""
        done = self.admin.pgconn.exec_(WATCH)
        if done.status != ExecStatus.COMMAND_OK:
            raise RuntimeError(f"noticing logins needs a superuser: {done.error_message.decode()}")
        made(look=True)
        self._before = self._sessions()

    def bypassed(self) -> str:
        ours, now = made(), self._sessions()
        bypassing = [told for pid, told in now.items() if pid not in ours and self._before.get(pid) != told]
        logins = self.admin.execute("SELECT pid, client FROM explorer.login").fetchall()
        bypassing += [f"{client or 'a client'} (process {pid})" for pid, client in logins if pid not in ours]
        return f"{bypassing[0]} talked to PostgreSQL past the gates" if bypassing else ""

    def _sessions(self) -> dict[int, str]:
        return dict(self.admin.execute(SESSIONS).fetchall())


def made(look: bool = False) -> set[int]:
    """The process ids of all sessions that psycopg has in this process, or had since the gates were installed. `look`
    for those that existed before."""
    for connection in existing(psycopg.Connection) if look else ():
        if not connection.closed:
            _made.add(connection.info.backend_pid)
    return _made
