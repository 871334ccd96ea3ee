"""Commands that make, change or drop something that is no row: a table, a view, a function, a right.

What an operation makes so is in no snapshot, so the next schedule would find it; and PostgreSQL decides by unique
indexes of its catalogue who is the first. An operation that does so cannot be explored. PostgreSQL itself says which
command does: a trigger of the database refuses it, also inside of a function. A temporary table is another one in each
session. And a table that the setup has made is left alone by CREATE TABLE IF NOT EXISTS.

Whoever explores locks that keep a row in a table of their own lets them make it (`TABLES`), and puts its rows back.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from psycopg.pq import ExecStatus

from lost_update_lab.model.errors import Broken
from lost_update_lab.servers.makes import MAKES, refused
from lost_update_lab.telling.narrative import shortened

#: the commands that make tables, and what belongs to them
TABLES = ("CREATE TABLE", "CREATE TABLE AS", "SELECT INTO", "CREATE INDEX")
#: the function notes what it refuses in a sequence, which no rollback takes back: code may hide the error. Once the
#: explorer's own session has ended, it refuses nothing
_REFUSE = """
CREATE SCHEMA IF NOT EXISTS explorer;
CREATE SEQUENCE IF NOT EXISTS explorer.refused;
ALTER SEQUENCE explorer.refused RESTART;
CREATE OR REPLACE FUNCTION explorer.refuse() RETURNS event_trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE makes bool;
BEGIN
    IF tg_event = 'sql_drop' THEN
        SELECT bool_or(original AND NOT is_temporary) INTO makes
        FROM pg_catalog.pg_event_trigger_dropped_objects();
    ELSE
        SELECT bool_or(schema_name IS DISTINCT FROM 'pg_temp') INTO makes
        FROM pg_catalog.pg_event_trigger_ddl_commands();
    END IF;
    makes := makes AND pg_catalog.pg_backend_pid() <> {pid} AND tg_tag <> ALL ('{{{allowed}}}');
    IF makes AND EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity({pid}) WHERE backend_start = '{since}') THEN
        PERFORM pg_catalog.nextval('explorer.refused');
        RAISE EXCEPTION '{sentence}';
    END IF;
END $$;
DROP EVENT TRIGGER IF EXISTS explorer_makes;
DROP EVENT TRIGGER IF EXISTS explorer_drops;
CREATE EVENT TRIGGER explorer_makes ON ddl_command_end EXECUTE FUNCTION explorer.refuse();
CREATE EVENT TRIGGER explorer_drops ON sql_drop EXECUTE FUNCTION explorer.refuse();
"""
_ALLOW = b"DROP EVENT TRIGGER IF EXISTS explorer_makes; DROP EVENT TRIGGER IF EXISTS explorer_drops"
_SELF = "SELECT pid, backend_start::text FROM pg_stat_get_activity(pg_backend_pid())"
#: a row if something was refused, in the form of locks.HELD
REFUSED = "SELECT 0, '', '' FROM explorer.refused WHERE is_called"

#: of these no trigger hears: what all databases share, and a table that is made by being explained
_UNHEARD = re.compile(
    r"\s*(?:(?:CREATE|ALTER|DROP)\s+(?:DATABASE|ROLE|USER|GROUP|TABLESPACE|SYSTEM|EVENT\s+TRIGGER)\b"
    r"|(?:GRANT|REVOKE)\b(?!.*\bON\b)|EXPLAIN\b.*\bCREATE\b)",
    re.IGNORECASE | re.DOTALL,
)

_REFRESH = re.compile(r"\s*REFRESH\s+MATERIALIZED\b", re.IGNORECASE)
VIEWS_STAY = "the explorer puts back what tables hold, and not what a materialized view holds"
A_PLAIN_TABLE = (
    "for the trial, let the setup make a plain table instead of the materialized view, and fill that as the operation "
    "refreshes the view (DELETE, and INSERT … SELECT)"
)


def refuse(admin: Any, allowed: Collection[str]) -> None:
    """From now on. `admin`: the explorer's own session, a superuser's. `allowed`: the names of commands."""
    pid, since = admin.execute(_SELF).fetchone()
    text = _REFUSE.format(pid=pid, since=since, sentence=MAKES, allowed=",".join(allowed))
    done = admin.pgconn.exec_(text.encode())
    if done.status != ExecStatus.COMMAND_OK:
        raise RuntimeError(f"noticing what makes tables: {done.error_message.decode(errors='replace')}")


def allow(admin: Any) -> None:
    admin.pgconn.exec_(_ALLOW)


def beyond(text: str) -> Broken | None:
    """The reason why the explorer cannot vouch for this command; None if it can, or if PostgreSQL says so."""
    if _REFRESH.match(text):
        return Broken(f"{VIEWS_STAY} ({shortened(text, 80)})", A_PLAIN_TABLE)
    return refused(text) if _UNHEARD.match(text) else None
