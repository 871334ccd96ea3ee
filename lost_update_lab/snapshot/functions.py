"""The functions in the server that look at a database, and restore it. Each looks only at the tables that were written.

A table's contents are known by a sum: of 64-bit hashes of its rows' texts, with their number. Each row's place counts,
since a query without a total order shows it; in a large table it does not. Columns that the server computes from others
are left out.

The rows of a restored table always come in the same order. An UPDATE of many rows locks them in the order of their
places on disk: whether two such commands end in a deadlock would depend on the schedules that ran before. So `empty`
deletes all rows, and inserts them again behind the dead ones, on the same page:

    page:   1 2 3    2'    1 2 3    1' 3'    1 2 3    …    half of it is used: VACUUM, and `fill` begins at its front
            opening  run   opening  run      opening

A page that was less than half full has room for what the next schedule writes. Were it full, PostgreSQL would tidy it
up, and put the next row anywhere. To vacuum after each schedule costs a fifth of the schedules per second, as each
session then loads its knowledge of the table again (`python -m loadtest.bench.own_code`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from psycopg import sql

from lost_update_lab.snapshot import large, written
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.catalogue import Sequence, Table
from lost_update_lab.snapshot.large import LARGE_FROM

#: (table, column)
Names = Collection[tuple[str, str]]
_HASH = sql.SQL("hashtextextended(ROW({})::text, 0)")
_IN_ANY_ORDER = sql.SQL("(SELECT coalesce(sum({}), 0) || '/' || count(*) FROM ONLY {})")
_IN_ORDER = sql.SQL(
    "(SELECT coalesce(sum(hashtextextended(lab_text, lab_place)), 0) || '/' || count(*) FROM "
    "(SELECT ROW({})::text AS lab_text, row_number() OVER () AS lab_place FROM ONLY {}) AS lab_rows)"
)
_FUNCTION = sql.SQL("CREATE OR REPLACE FUNCTION {}({}) RETURNS text LANGUAGE plpgsql {} AS {}")
_BODY = sql.SQL(
    "#variable_conflict use_column\nDECLARE lab_found text := ''; lab_now text; {}{} BEGIN {} RETURN lab_found; END"
)
_LOOK = sql.SQL(
    "IF lab_written[{number}] THEN lab_now := {sum}; "
    "IF lab_now <> {opening} THEN lab_found := lab_found || '{number}:' || lab_now || ','; END IF; END IF;"
)
_INSERT = "INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {kept};"
#: The planner knows of it what it knows of a table that was just filled (postgres.py), and less than half of its only
#: page is used: by so many rows, dead ones too, each as large as the largest, with its pointer and what aligns it
_HAS_ROOM = (
    "(SELECT relpages = 0 AND reltuples = 0 FROM pg_class WHERE oid = {oid}) "
    "AND pg_relation_size({oid}) <= lab_page AND (SELECT coalesce(max((lab_row.ctid::text::point)[1]) "
    "* (max(pg_column_size(lab_row.*)) + 12), lab_page) FROM ONLY {table} lab_row) < lab_page * {fillfactor} / 200"
)
#: a table that was not written and differs all the same is found as "number!,"
_EMPTY = sql.SQL(
    "IF lab_every OR lab_written[{number}] THEN "  # noqa: S608  (names that psycopg has quoted)
    "IF {sum} <> {opening} THEN "
    f"lab_room := lab_written[{{number}}] AND NOT lab_afresh AND {_HAS_ROOM}; DELETE FROM ONLY {{table}}; "
    f"IF lab_room THEN {_INSERT} ELSE "
    "lab_found := lab_found || '{number}' || CASE WHEN lab_written[{number}] THEN ',' ELSE '!,' END; "
    "END IF; END IF; END IF;"
)
_FILL = sql.SQL(f"IF {{number}} = ANY(lab_empty) THEN {_INSERT} END IF;")
#: a sequence that was never used has no last value, and may have been set to begin elsewhere: it is read itself
_SEQUENCES = sql.SQL(
    "FOR lab_sequence IN SELECT * FROM (VALUES {was}) AS lab_was (name, last, called, id) "
    "WHERE CASE WHEN called THEN pg_sequence_last_value(id) IS DISTINCT FROM last ELSE {moved} END "
    "LOOP PERFORM setval(lab_sequence.name::regclass, lab_sequence.last, lab_sequence.called); END LOOP;"
)
_MOVED = sql.SQL("WHEN {} THEN (SELECT is_called OR last_value <> last FROM {})")


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table, its number from 1, the table that keeps its opening rows, and the sum of these. `since`: large.py.
    `ordered`: equal rows in another order are other contents."""

    number: int
    table: Table
    kept: sql.Identifier
    since: int
    opening: str = ""
    ordered: bool = True

    @property
    def is_large(self) -> bool:
        return bool(self.table.key) and self.rows >= LARGE_FROM

    @property
    def rows(self) -> int:
        """How many it had after the setup."""
        return int(self.opening.partition("/")[2] or 0)

    def sum_of(
        self, where: sql.Identifier, left_out: Names = (), by_server: ByServer | None = None
    ) -> sql.Composed:
        """`where`: the table itself, or the one that keeps its opening rows."""
        columns = columns_of(self.table, left_out, by_server)
        if self.ordered:
            return _IN_ORDER.format(columns, where)
        return _IN_ANY_ORDER.format(_HASH.format(columns), where)

    def fields(self, left_out: Names = (), by_server: ByServer | None = None) -> dict[str, sql.Composable]:
        table, columns = self.table, columns_of(self.table, left_out, by_server)
        found: dict[str, sql.Composable] = {
            "number": sql.Literal(self.number),
            "sum": self.sum_of(table.quoted, left_out, by_server),
            "opening": sql.Literal(self.opening),
            "oid": sql.Literal(table.oid),
            "fillfactor": sql.Literal(table.fillfactor),
            "table": table.quoted,
            "kept": self.kept,
            "columns": columns_of(table),
            "hash": _HASH.format(columns),
        }
        return found | (large.fields(table.key, self.since) if table.key else {})


def keeping(kept: KeptTable) -> sql.Composed:
    """The command that keeps the rows of a table."""
    columns = columns_of(kept.table)
    return sql.SQL("CREATE UNLOGGED TABLE {} AS SELECT {} FROM ONLY {}").format(
        kept.kept, columns, kept.table.quoted
    )


def indexing(kept: KeptTable) -> sql.Composed:
    """… and by which each kept row of a large one is found by its key."""
    key = sql.SQL(", ").join(map(sql.Identifier, kept.table.key))
    return sql.SQL("CREATE UNIQUE INDEX ON {} ({})").format(kept.kept, key)


def columns_of(table: Table, left_out: Names = (), by_server: ByServer | None = None) -> sql.Composed:
    """The columns that make its contents. `by_server`: without what the server has written there by itself."""
    names = [c.name for c in table.columns if not c.generated and (table.title, c.name) not in left_out]
    if by_server:
        return sql.SQL(", ").join([by_server.told(table, each) for each in names])
    return sql.SQL(", ").join(map(sql.Identifier, names))


def looking(
    name: sql.Identifier,
    tables: Iterable[KeptTable],
    left_out: Names = (),
    by_server: ByServer | None = None,
) -> sql.Composed:
    """The function (written) → "number:sum," of each table that differs from its opening state. `opening` of each table
    is its sum by the same columns."""
    parts = [
        (large.LOOK if each.is_large else _LOOK).format(**each.fields(left_out, by_server)) for each in tables
    ]
    return _function(name, "lab_written bool[]", "", parts, "STABLE")


def emptying(
    schema: str, tables: Iterable[KeptTable], sequences: Collection[Sequence], counts: bool
) -> sql.Composed:
    """The function (every, afresh) → the numbers of the tables that it has emptied, to be vacuumed and filled.

    It restores the written tables, or `every` table that differs; `afresh`: none behind its dead rows. It sets each
    sequence back to its number, and restores the large tables, of which it moves only what has changed. `counts`: as in
    PostgresSnapshot.
    """
    parts: list[sql.Composable] = []
    for each in tables:
        parts.append((large.PUT_BACK if each.is_large else _EMPTY).format(**each.fields()))
    parts += [_set_back(sequences)] if sequences else []
    parts += [written.forget(schema), sql.SQL(";")] if counts else []
    declared = (
        f"lab_sequence record; lab_written bool[] := {schema}.written(); lab_room bool; "
        "lab_page int := current_setting('block_size'); "
    )
    return _function(sql.Identifier(schema, "empty"), "lab_every bool, lab_afresh bool", declared, parts)


def filling(schema: str, tables: Iterable[KeptTable]) -> sql.Composed:
    """The function (numbers) → "". It fills these tables, which are empty, with their opening rows."""
    parts = [_FILL.format(**each.fields()) for each in tables]
    return _function(sql.Identifier(schema, "fill"), "lab_empty int[]", "", parts)


def _set_back(sequences: Collection[Sequence]) -> sql.Composed:
    was, moved = [], []
    for each in sequences:
        name = sql.Literal(each.quoted.as_string())
        was.append(sql.SQL("({}, {}::bigint, {}, {}::regclass)").format(name, each.last, each.called, name))
        if not each.called:
            moved.append(_MOVED.format(name, each.quoted))
    either = sql.SQL("CASE name {} END").format(sql.SQL(" ").join(moved)) if moved else sql.SQL("false")
    return _SEQUENCES.format(was=sql.SQL(", ").join(was), moved=either)


def _function(
    name: sql.Identifier, takes: str, declared: str, parts: Iterable[sql.Composable], kind: str = "VOLATILE"
) -> sql.Composed:
    body = _BODY.format(sql.SQL(declared), sql.SQL(large.DECLARED), sql.SQL(" ").join(parts)).as_string()
    return _FUNCTION.format(name, sql.SQL(takes), sql.SQL(kind), sql.Literal(body))
