"""What a setup makes besides rows: types, functions, views, tables. And what it refreshes: materialized views.

All that is newer is dropped at the end, so that the same setup can run again: for the next pair of operations, at the
next isolation level, in the next test.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from lost_update_lab.snapshot.catalogue import OF_THE_USER

#: each once, by the catalogue that lists it. Not the parts of an extension, nor the sequence that belongs to a column
_OBJECTS = f"""
WITH theirs AS (SELECT oid FROM pg_namespace WHERE {OF_THE_USER}), every AS (
    SELECT 'pg_namespace'::regclass AS of, oid FROM theirs
    UNION ALL SELECT 'pg_extension'::regclass, oid FROM pg_extension
    UNION ALL SELECT 'pg_class'::regclass, c.oid FROM pg_class c JOIN theirs t ON t.oid = relnamespace
        WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'c')
    UNION ALL SELECT 'pg_type'::regclass, y.oid FROM pg_type y JOIN theirs t ON t.oid = typnamespace
        WHERE typtype IN ('e', 'd', 'r')
    UNION ALL SELECT 'pg_proc'::regclass, p.oid FROM pg_proc p JOIN theirs t ON t.oid = pronamespace)
SELECT every.of::oid, every.oid, type, identity FROM every, pg_identify_object(every.of, every.oid, 0)
WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = every.of AND d.objid = every.oid
    AND (d.deptype = 'e' OR (type = 'sequence' AND d.deptype IN ('a', 'i'))))
"""  # noqa: S608  (names of our own)
_VIEWS = f"""
SELECT nspname, relname, relispopulated FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'm' AND {OF_THE_USER}
"""  # noqa: S608
_SUM = "SELECT md5(coalesce(string_agg(t::text, ',' ORDER BY t::text COLLATE \"C\"), '')) FROM {} t"
#: what pg_identify_object calls it → what DROP calls it, where that differs
_DROPPED_AS = {"composite type": "type"}

View = tuple[str, str]
_LARGE = "SELECT oid FROM pg_largeobject_metadata"


class MadeBefore:
    """What existed when this was made. `connection`: a superuser's, in autocommit."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._objects, self._views = _objects(connection), _views(connection)
        self._large = [oid for (oid,) in connection.execute(_LARGE)]

    def drop_newer(self) -> None:
        """An object that replaces another of the same name stays: the code that dropped the old one meant to, and
        nobody can make it again."""
        names = set(self._objects.values())
        for each, (kind, identity) in _objects(self.connection).items():
            if each not in self._objects and (kind, identity) not in names:
                drop = f"DROP {_DROPPED_AS.get(kind, kind)} IF EXISTS {identity} CASCADE"
                self.connection.execute(drop.encode())
        for (oid,) in self.connection.execute(_LARGE).fetchall():
            if oid not in self._large:
                self.connection.execute("SELECT lo_unlink(%s)", [oid])

    def refresh(self) -> None:
        """Put materialized views back that differ, once their tables hold again what they held."""
        for name, contents in _views(self.connection).items():
            if name in self._views and contents != self._views[name]:
                how = sql.SQL("REFRESH MATERIALIZED VIEW {}" + " WITH NO DATA" * (not self._views[name]))
                self.connection.execute(how.format(sql.Identifier(*name)))


def _objects(connection: psycopg.Connection[Any]) -> dict[tuple[int, int], tuple[str, str]]:
    """Catalogue and oid → the kind, and the quoted name with its arguments."""
    return {(of, oid): (kind, identity) for of, oid, kind, identity in connection.execute(_OBJECTS)}


def _views(connection: psycopg.Connection[Any]) -> dict[View, str]:
    """The materialized views → a digest of what they hold; "": nothing yet."""
    return {
        (schema, name): _sum(connection, schema, name) if filled else ""
        for schema, name, filled in connection.execute(_VIEWS).fetchall()
    }


def _sum(connection: psycopg.Connection[Any], schema: str, name: str) -> str:
    row = connection.execute(sql.SQL(_SUM).format(sql.Identifier(schema, name))).fetchone()
    assert row
    return str(row[0])
