"""The contents of a PostgreSQL database by its catalogue: tables, columns, sequences, and what cannot be restored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from lost_update_lab.snapshot.chance import draws, rises

#: the engine's own schemas
OWN = ("explorer", "explorer_opening", "explorer_before")
#: a condition in SQL: the schema is one of the user's
OF_THE_USER = f"nspname NOT IN {('pg_catalog', 'information_schema', *OWN)} AND nspname !~ '^pg_'"

_TABLES = f"""
SELECT c.oid, nspname, relname, coalesce((
    SELECT option_value::int FROM pg_options_to_table(reloptions) WHERE option_name = 'fillfactor'), 100)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'r' AND {OF_THE_USER}
AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
ORDER BY nspname, relname
"""  # noqa: S608  (names of our own)
_COLUMNS = """
SELECT attrelid, attname, format_type(atttypid, NULL), attgenerated <> '',
    attidentity <> '' OR coalesce(pg_get_expr(adbin, adrelid), '') LIKE '%%nextval(%%',
    coalesce(pg_get_expr(adbin, adrelid), '')
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = ANY(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attrelid, attnum
"""
_KEYS = """
SELECT conrelid, contype, (SELECT array_agg(attname::text ORDER BY place)
    FROM unnest(conkey) WITH ORDINALITY AS k (num, place)
    JOIN pg_attribute ON attrelid = conrelid AND attnum = num), confrelid
FROM pg_constraint WHERE conrelid = ANY(%s) AND contype IN ('p', 'f')
"""
_SEQUENCES = f"""
SELECT nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'S' AND {OF_THE_USER} ORDER BY nspname, relname
"""  # noqa: S608
_LAST = sql.SQL("(SELECT ARRAY[last_value, is_called::int] FROM {})")
#: expressions in one SELECT; PostgreSQL takes 1664
MOST_AT_ONCE = 500
_OUT_OF_REACH = f"""
SELECT 'large objects' WHERE EXISTS (SELECT FROM pg_largeobject_metadata)
UNION ALL SELECT 'the foreign table ' || relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'f' AND {OF_THE_USER}
UNION ALL SELECT 'the trigger ' || tgname || ', which is ENABLE ALWAYS' FROM pg_trigger WHERE tgenabled = 'A'
UNION ALL SELECT 'the rule ' || rulename || ', which is ENABLE ALWAYS' FROM pg_rewrite WHERE ev_enabled = 'A'
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Column:
    """`generated`: computed by the server. `drawn`: its default draws a number from a sequence. `chance`: its default
    calls the server's clock or its random numbers. `rising`: it asks for something of which each is larger than the one
    before."""

    name: str
    type: str
    generated: bool
    drawn: bool
    chance: bool
    rising: bool = False

    @property
    def unlike_any(self) -> bool:
        """Unless somebody gives its value, the server makes one that no other row has."""
        return self.drawn or (self.type == "uuid" and self.chance)


@dataclass(frozen=True, slots=True)
class Table:
    """`refers`: column → the oid of the table whose key it holds. `fillfactor`: percents of a page for new rows."""

    oid: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    refers: tuple[tuple[str, int], ...]
    fillfactor: int = 100

    @property
    def title(self) -> str:
        """The name that people use."""
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    @property
    def surrogate(self) -> str:
        """The column whose values mean only "this row": a number from a sequence, or a random key. "": none."""
        types = {each.name: each for each in self.columns}
        if len(self.key) == 1 and (types[self.key[0]].drawn or types[self.key[0]].type == "uuid"):
            return self.key[0]
        return ""

    @property
    def meaningless(self) -> tuple[str, ...]:
        """The surrogate, and every other column with a number from a sequence: a draw is never taken back, so any two
        orders may give other numbers."""
        drawn = [each.name for each in self.columns if each.drawn and each.name != self.surrogate]
        return tuple(filter(None, (self.surrogate, *drawn)))


@dataclass(frozen=True, slots=True)
class Sequence:
    quoted: sql.Identifier
    last: int
    called: bool


@dataclass(frozen=True, slots=True)
class Catalogue:
    tables: tuple[Table, ...]
    sequences: tuple[Sequence, ...]
    #: what no snapshot can restore
    out_of_reach: tuple[str, ...]


def look(connection: psycopg.Connection[Any]) -> Catalogue:
    """The database as it is now."""
    found = connection.execute(_TABLES).fetchall()
    oids = [oid for oid, *_ in found]
    columns = _by_first(connection.execute(_COLUMNS, [oids]).fetchall())
    keys = _by_first(connection.execute(_KEYS, [oids]).fetchall())
    tables = tuple(
        Table(
            oid,
            schema,
            name,
            tuple(_column(*row) for row in columns.get(oid, ())),
            next((tuple(names) for kind, names, _ in keys.get(oid, ()) if kind == "p"), ()),
            tuple((names[0], to) for kind, names, to in keys.get(oid, ()) if kind == "f" and len(names) == 1),
            fillfactor,
        )
        for oid, schema, name, fillfactor in found
    )
    sequences = [sql.Identifier(*row) for row in connection.execute(_SEQUENCES).fetchall()]
    numbers = values(connection, [_LAST.format(each) for each in sequences])
    drawn = [
        Sequence(each, last, bool(called)) for each, (last, called) in zip(sequences, numbers, strict=True)
    ]
    out_of_reach = tuple(what for (what,) in connection.execute(_OUT_OF_REACH).fetchall())
    return Catalogue(tables, tuple(drawn), out_of_reach)


def values(connection: psycopg.Connection[Any], of: list[sql.Composed]) -> list[Any]:
    """The values of these expressions, each of one row and one column, in as few queries as may be."""
    found: list[Any] = []
    for first in range(0, len(of), MOST_AT_ONCE):
        query = sql.SQL("SELECT {}").format(sql.SQL(", ").join(of[first : first + MOST_AT_ONCE]))
        found += connection.execute(query).fetchone() or ()
    return found


def _column(name: str, kind: str, generated: bool, drawn: bool, default: str) -> Column:
    return Column(name, kind, generated, drawn, draws(default), rises(default))


def _by_first(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = {}
    for first, *rest in rows:
        found.setdefault(first, []).append(tuple(rest))
    return found
