"""What asks PostgreSQL's clock where no command shows it asks the shadows (shadows.py) while a search lasts.

    the table has         created_at timestamptz DEFAULT now()
    during the search     created_at timestamptz DEFAULT explorer.now()

    its trigger has       NEW.updated_at := now();
    during the search     NEW.updated_at := explorer.now();

So it is with DEFAULTs, functions, procedures, views, policies, checks, rules, and the WHEN of a trigger. This is done
only if such a time decides something: a command, a function or a view compares it (`WHERE created_at < now() -
interval '10 min'`) or, as far as can be told, the worker that reads it. Where it is only written down, the server's own
clock may write it. A search that was killed leaves all this behind, so the next one puts it back first.

A check is made anew without a look at the rows that are there (NOT VALID), and then called valid again if it was. The
DEFAULT of a domain stays as it is, and is refused: with the explorer's functions, which are dropped with all that uses
them, the domain would go, and its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from lost_update_lab.servers.postgres.clock_words import beyond, of_the_server, virtual
from lost_update_lab.servers.postgres.shadows import shadows
from lost_update_lab.snapshot.catalogue import OF_THE_USER
from lost_update_lab.snapshot.other_sessions import cleaned_up

#: a check is dropped and made anew; with it, the checks of other tables that inherit it, and its comment
_CHECKS = f"""
SELECT concat(whose, ' DROP CONSTRAINT ', quote_ident(k.conname), '; ',
    whose, ' ADD CONSTRAINT ', quote_ident(k.conname), ' ', pg_get_constraintdef(k.oid), CASE WHEN k.convalidated THEN
    format(' NOT VALID; UPDATE pg_constraint SET convalidated = true WHERE conname = %L AND conrelid = ANY (%L::oid[]) '
        'AND contypid = %L', k.conname, array_agg(same.conrelid), k.contypid) END,
    format('; COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, what, obj_description(k.oid, 'pg_constraint'))), ''
FROM (
    SELECT k.oid AS check, 'ALTER TABLE ' || c.oid::regclass AS whose, c.oid::regclass::text AS what
    FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid JOIN pg_namespace n ON n.oid = relnamespace
    WHERE contype = 'c' AND coninhcount = 0 AND {OF_THE_USER}
    UNION ALL SELECT k.oid, 'ALTER DOMAIN ' || y.oid::regtype, 'DOMAIN ' || y.oid::regtype
    FROM pg_constraint k JOIN pg_type y ON y.oid = contypid JOIN pg_namespace n ON n.oid = typnamespace
    WHERE contype = 'c' AND {OF_THE_USER}) AS made
JOIN pg_constraint k ON k.oid = made.check
JOIN pg_constraint same ON same.oid = k.oid OR (same.conname = k.conname AND same.coninhcount > 0 AND same.convalidated)
GROUP BY whose, what, k.oid, k.conname, k.convalidated, k.contypid
"""  # noqa: S608  (names of our own)
#: how each of them is made, and, of a function, the body in it. Not those of extensions
_MADE = f"""
SELECT format('ALTER TABLE ONLY %I.%I ALTER COLUMN %I SET DEFAULT %s', nspname, relname, attname,
    pg_get_expr(adbin, adrelid)), ''
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
JOIN pg_class c ON c.oid = adrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE attgenerated = '' AND {OF_THE_USER}
UNION ALL
SELECT pg_get_functiondef(p.oid), prosrc
FROM pg_proc p JOIN pg_language l ON l.oid = prolang JOIN pg_namespace n ON n.oid = pronamespace
WHERE lanname IN ('plpgsql', 'sql') AND prokind IN ('f', 'p') AND {OF_THE_USER}
AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND classid = 'pg_proc'::regclass AND deptype = 'e')
UNION ALL
SELECT format('CREATE OR REPLACE VIEW %I.%I%s AS %s', nspname, relname,
    ' WITH (' || array_to_string(reloptions, ', ') || ')', pg_get_viewdef(c.oid)), ''
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'v' AND {OF_THE_USER}
AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND classid = 'pg_class'::regclass AND deptype = 'e')
UNION ALL
SELECT concat(format('ALTER POLICY %I ON %I.%I', polname, nspname, relname),
    ' USING (' || pg_get_expr(polqual, polrelid) || ')',
    ' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')'), ''
FROM pg_policy JOIN pg_class c ON c.oid = polrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE {OF_THE_USER}
UNION ALL
SELECT regexp_replace(pg_get_triggerdef(t.oid), '^CREATE', 'CREATE OR REPLACE'), ''
FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE tgqual IS NOT NULL AND tgenabled = 'O' AND tgparentid = 0 AND {OF_THE_USER}
UNION ALL
SELECT regexp_replace(definition, '^CREATE', 'CREATE OR REPLACE'), ''
FROM pg_rules JOIN pg_namespace ON nspname = schemaname WHERE {OF_THE_USER}
UNION ALL
{_CHECKS}
"""  # noqa: S608  (names of our own)
#: for a session of nobody's that has read a view, and does not end its transaction
_WAITS = "SET lock_timeout = '5s'"
_LEFT = "SELECT to_regnamespace('explorer') IS NOT NULL"


class Shadowed:
    """`connection`: a superuser's, in autocommit."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._before: list[str] = []

    def make(self) -> None:
        self._connection.execute(_WAITS)
        self._connection.execute(shadows().encode())
        for made in self._made_otherwise(virtual):
            self._before.append(made)

    def put_back(self) -> None:
        """Each one as it was. It does nothing the second time."""
        cleaned_up(self._put_back, self._connection.execute)

    def _put_back(self) -> None:
        while self._before:
            self._connection.execute(self._before[-1].encode())
            self._before.pop()

    def put_back_what_is_left(self) -> None:
        """By a search that was killed."""
        left = self._connection.execute(_LEFT).fetchone()
        if left and left[0]:
            list(self._made_otherwise(of_the_server))

    def _made_otherwise(self, otherwise: Callable[[str], str]) -> Iterator[str]:
        """Make what comes out otherwise, and yield how it was made."""
        for made, body in self._connection.execute(_MADE.encode()).fetchall():
            if beyond(body or made):
                continue
            head, quoted, rest = made.rpartition(body) if body else (made, "", "")
            if (other := otherwise(head) + otherwise(quoted) + otherwise(rest)) != made:
                with suppress(psycopg.Error):  # it stays as it was, and is refused where it decides
                    self._connection.execute(other.encode())
                    yield made


@contextmanager
def shadowed(connection: psycopg.Connection[Any]) -> Iterator[Shadowed]:
    found = Shadowed(connection)
    try:
        found.make()
        yield found
    finally:
        found.put_back()
