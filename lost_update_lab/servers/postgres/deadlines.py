"""The times in PostgreSQL's rows that may be yet to come, by one query over all columns of such types."""

from __future__ import annotations

from collections.abc import Collection

from lost_update_lab.model.bounds import SECOND
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.servers.deadlines import Ends
from lost_update_lab.snapshot.catalogue import OF_THE_USER

Rows = list[tuple[bytes | None, ...]]
#: the parts of that query, one for each column, with the names of its table and of the column
_COLUMNS = f"""
SELECT format('SELECT %L || left(%I::text, 40) || %L, ceil(extract(epoch FROM %I%s) * 1000000)::bigint FROM ONLY %I.%I '
    'WHERE isfinite(%I) AND %I > timestamptz ''epoch'' + %L::interval', relname || '[', first.attname,
    '].' || a.attname, a.attname, CASE a.atttypid WHEN 'timestamp'::regtype THEN ' AT TIME ZONE ''UTC''' ELSE '' END,
    nspname, relname, a.attname, a.attname, 'BEGAN s'),
    CASE nspname WHEN 'public' THEN relname ELSE nspname || '.' || relname END, a.attname
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_attribute first ON first.attrelid = c.oid AND first.attnum = 1
WHERE relkind = 'r' AND a.atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype) AND a.attnum > 0
AND {OF_THE_USER} AND NOT a.attisdropped
AND NOT first.attisdropped
"""  # noqa: S608  (names of our own)


def columns() -> bytes:
    """The question for the columns, as `query` needs them."""
    return _COLUMNS.replace("BEGAN", str(Epoch.shows)).encode()


def query(found: Rows, by_own_clock: Collection[tuple[str, str]] = ()) -> bytes:
    """One query for all of them. b"": no table has a time. `by_own_clock`: columns, each with its table, into which the
    server's own clock writes. That is ahead of the virtual one, and nothing ends when this one comes there."""
    named = ((text, tuple((name or b"").decode() for name in names)) for text, *names in found)
    return b" UNION ALL ".join(text or b"" for text, names in named if names not in by_own_clock)


def ends(rows: Rows, steps_by: int = 0) -> Ends:
    """From the rows of that query. A time is over just after it: `<` and `<=` agree then. Where a command compares it
    with a clock that is rounded, and goes on by so many seconds, it is over for that one a step later."""
    began = round(Epoch.shows) * SECOND
    found = [((name or b"?").decode(), int(at or 0) - began + 1) for name, at in rows]
    found += [(f"{name}, by a rounded clock", at + steps_by * SECOND) for name, at in found if steps_by]
    return tuple(sorted(found))
