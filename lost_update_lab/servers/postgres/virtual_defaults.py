"""Columns that a DEFAULT fills by PostgreSQL's clock go by the explorer's, for as long as a search lasts.

    the table has        created_at timestamptz DEFAULT now()
    during the search    created_at timestamptz DEFAULT explorer.now()

This is done only if such a time is compared, by a command (`WHERE created_at < now() - interval '10 min'`) or, as far
as can be told, by the worker that reads it. Where it is only written down, the server's own clock may write it. A
search that was killed leaves its DEFAULTs behind, so the next one puts them back first.

The DEFAULT of a domain stays as it is, and is refused: with the explorer's functions, which are dropped with all that
uses them, the domain would go, and its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from lost_update_lab.servers.postgres.clock_words import asks, of_the_server, virtual
from lost_update_lab.servers.postgres.shadows import shadows
from lost_update_lab.snapshot.catalogue import OF_THE_USER

_DEFAULTS = f"""
SELECT nspname, relname, attname, pg_get_expr(adbin, adrelid)
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
JOIN pg_class c ON c.oid = adrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE attgenerated = '' AND {OF_THE_USER}
"""  # noqa: S608  (names of our own)
_SET = sql.SQL("ALTER TABLE ONLY {} ALTER COLUMN {} SET DEFAULT {}")

#: a schema, a table, a column, its DEFAULT
Default = tuple[str, str, str, str]


@contextmanager
def virtual_defaults(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """`connection`: a superuser's, in autocommit."""
    connection.execute(shadows().encode())
    found = [each for each in _defaults(connection) if asks(each[3])]
    _set(connection, ((*names, virtual(text)) for *names, text in found))
    try:
        yield
    finally:
        _set(connection, found)


def put_defaults_back(connection: psycopg.Connection[Any]) -> None:
    """What a search has left behind that was killed."""
    found = _defaults(connection)
    _set(connection, ((*names, own) for *names, text in found if (own := of_the_server(text)) != text))


def _defaults(connection: psycopg.Connection[Any]) -> list[Default]:
    return connection.execute(_DEFAULTS.encode()).fetchall()


def _set(connection: psycopg.Connection[Any], defaults: Iterable[tuple[str, ...]]) -> None:
    for schema, table, column, text in defaults:
        connection.execute(_SET.format(sql.Identifier(schema, table), sql.Identifier(column), sql.SQL(text)))
