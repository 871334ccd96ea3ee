"""Which tables may a schedule have written? PostgreSQL's own counters tell, whatever wrote: SQL, triggers, cascades,
functions, COPY.

PostgreSQL counts each row that is inserted, updated or deleted, for each table, also if the transaction is rolled back.
What has no count gives the table another file: TRUNCATE, and every rewrite. A session adds its counts to the shared
ones at most once a second, unless it is told to (PUBLISH). So a session that has committed is told to, before anybody
looks. Counters that were reset, or a session that does not count, mean that every table may have been written.

In a small database each table counts as written, always: to look at it costs less than to ask for its counters. For one
table that is 6 to 13 % more schedules per second (the cases of `python -m loadtest.bench.own_code`).
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from lost_update_lab.snapshot.catalogue import OWN, Table

#: what a session is told after it has committed; it says whether it counts
PUBLISH = b"SELECT pg_catalog.pg_stat_force_next_flush(), pg_catalog.current_setting('track_counts')"
#: after this every table may have been written: a client has committed that was told nothing
LOOK_AT_ALL = f"UPDATE {OWN[1]}.counted SET inserted = NULL RETURNING 1"  # noqa: S608  (a name of our own)
#: a database is small up to
FEW_TABLES, FEW_ROWS = 3, 30
_COLUMNS = sql.SQL("file, inserted, updated, deleted, reset")
_NOW = sql.SQL(
    "pg_relation_filenode(c.oid), pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid), "
    "pg_stat_get_tuples_deleted(c.oid), "
    "(SELECT pg_stat_get_db_stat_reset_time(oid) FROM pg_database WHERE datname = current_database())"
)
#: `file` NULL: its rows are not counted, as it is no table of PostgreSQL's own kind
_MAKE = sql.SQL(
    "CREATE UNLOGGED TABLE {schema}.counted (number, oid, {columns}) AS SELECT number, c.oid, {now} "
    "FROM unnest({oids}::oid[]) WITH ORDINALITY AS t (oid, number) JOIN pg_class c USING (oid);"
    "UPDATE {schema}.counted t SET file = NULL FROM pg_class c "
    "WHERE c.oid = t.oid AND c.relam <> (SELECT oid FROM pg_am WHERE amname = 'heap');"
    "CREATE FUNCTION {schema}.written() RETURNS bool[] LANGUAGE sql AS $$ SELECT coalesce(array_agg("
    "file IS NULL OR ROW({columns}) IS DISTINCT FROM ROW({now}) ORDER BY number), '{{}}') FROM {schema}.counted c $$"
)
_ALL = sql.SQL("CREATE FUNCTION {}.written() RETURNS bool[] LANGUAGE sql IMMUTABLE AS {}")
_FORGET = sql.SQL(
    "UPDATE {schema}.counted c SET ({columns}) = ROW({now}) "
    "WHERE file IS NOT NULL AND ROW({columns}) IS DISTINCT FROM ROW({now})"
)


def make(schema: str, tables: Sequence[Table]) -> sql.Composed:
    """The statements for the counters of these tables as they are now, and for the function `written()`, which returns
    an array with one truth value for each of them."""
    oids = sql.Literal([table.oid for table in tables])
    return _MAKE.format(schema=sql.Identifier(schema), columns=_COLUMNS, now=_NOW, oids=oids)


def make_always(schema: str, tables: Sequence[Table]) -> sql.Composed:
    """The same function, by which each table is written."""
    every = sql.Literal(f"SELECT '{{{','.join('t' for _ in tables)}}}'::bool[]")
    return _ALL.format(sql.Identifier(schema), every)


def forget(schema: str) -> sql.Composed:
    """The statement after which no table is written."""
    return _FORGET.format(schema=sql.Identifier(schema), columns=_COLUMNS, now=_NOW)


def publish(session: PGconn) -> bool:
    """From now on everybody sees what the session has counted. False: it does not count."""
    found = session.exec_(PUBLISH)
    return found.status == ExecStatus.TUPLES_OK and found.get_value(0, 1) == b"on"
