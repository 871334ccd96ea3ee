"""What a setup sets for a database, or for a role: ALTER DATABASE … SET default_transaction_isolation = 'serializable'.

It lasts beyond the session, so the next search would meet it. It is put back at the end, as everything else is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

#: for this database, or for all of them ("")
_SETTINGS = """
SELECT coalesce(datname, ''), coalesce(rolname, ''), setting
FROM pg_db_role_setting
    LEFT JOIN pg_database d ON d.oid = setdatabase LEFT JOIN pg_roles r ON r.oid = setrole, unnest(setconfig) setting
WHERE setdatabase = 0 OR datname = current_database()
"""
#: lists of names, which are quoted where they are stored
_LISTS = frozenset(
    {"search_path", "temp_tablespaces", "local_preload_libraries", "session_preload_libraries"}
)

#: a database and a role, "" for each; the name
Setting = tuple[str, str, str]


def settings(connection: psycopg.Connection[Any]) -> dict[Setting, str]:
    """What new sessions begin with, by database, role and name."""
    found = {}
    for database, role, setting in connection.execute(_SETTINGS):
        name, _, value = setting.partition("=")
        found[database, role, name] = value
    return found


def put_settings_back(connection: psycopg.Connection[Any], before: dict[Setting, str]) -> None:
    """`connection`: a superuser's, in autocommit; `before`: as `settings` returned them."""
    for command in _differing(settings(connection), before):
        connection.execute(command)


def _differing(now: dict[Setting, str], before: dict[Setting, str]) -> Iterator[sql.Composed]:
    for each in sorted(now.keys() - before.keys()):
        yield sql.SQL("{} RESET {}").format(_altered(*each), sql.Identifier(each[2]))
    for each, value in sorted(before.items()):
        if now.get(each) != value:
            written = sql.SQL(value) if each[2] in _LISTS else sql.Literal(value)
            yield sql.SQL("{} SET {} = {}").format(_altered(*each), sql.Identifier(each[2]), written)


def _altered(database: str, role: str, _name: str) -> sql.Composable:
    if not role:
        return sql.SQL("ALTER DATABASE {}").format(sql.Identifier(database))
    inside = sql.SQL(" IN DATABASE {}").format(sql.Identifier(database)) if database else sql.SQL("")
    return sql.SQL("ALTER ROLE {}{}").format(sql.Identifier(role), inside)
