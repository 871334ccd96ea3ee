"""A scenario's database is a PostgreSQL: how it is left as it was found, looked at, and explored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from lost_update_lab.scenarios.commits import ObservedPostgres
from lost_update_lab.scenarios.constraints import Constraint, of_postgres
from lost_update_lab.scenarios.isolation import level_of
from lost_update_lab.servers.postgres.shadowed import Shadowed, shadowed
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.catalogue import OWN, Table
from lost_update_lab.snapshot.functions import Names
from lost_update_lab.snapshot.made import MadeBefore
from lost_update_lab.snapshot.other_sessions import cleaned_up, keeps_a_lock
from lost_update_lab.snapshot.postgres import CannotBeRestored, PostgresSnapshot
from lost_update_lab.snapshot.settings import put_settings_back, settings
from lost_update_lab.under_test.scenario import Mistake
from lost_update_lab.under_test.servers import Servers, prepared

_OPEN = """
SELECT left(query, 60), pg_terminate_backend(pid, 1000) FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND backend_xid IS NOT NULL
"""
_MARK = "SELECT pg_current_xact_id_if_assigned(), pg_snapshot_xmax(pg_current_snapshot())"

#: its clock, in UTC
NOW = "SELECT clock_timestamp() AT TIME ZONE 'UTC'"


def left_open(connection: psycopg.Connection[Any]) -> str:
    """The last command of a transaction that is still open, and is ended. "": there is none."""
    row = connection.execute(_OPEN).fetchone()
    return row[0] if row else ""


def mark(connection: psycopg.Connection[Any]) -> object:
    """A value that differs if something was committed in between."""
    return connection.execute(_MARK).fetchone()


@contextmanager
def left_as_found(servers: Servers) -> Iterator[None]:
    """At the end, what is newer is dropped, and the rest holds what it held before, whatever is still under way."""
    before = _snapshot(servers, "explorer_before")
    Shadowed(before.connection).put_back_what_is_left()
    made, began = MadeBefore(before.connection), settings(before.connection)

    def as_before() -> None:
        made.drop_newer()
        before.restore_all()
        made.refresh()
        put_settings_back(before.connection, began)

    try:
        yield
    finally:
        cleaned_up(as_before, before.connection.execute)
        before.close()


def tables(servers: Servers) -> PostgresSnapshot:
    """The database after the setup. Raises Mistake."""
    return _snapshot(servers, OWN[1])


def _snapshot(servers: Servers, schema: str) -> PostgresSnapshot:
    connection = psycopg.connect(servers.database, autocommit=True)
    try:
        return PostgresSnapshot(connection, schema)
    except CannotBeRestored as error:
        raise Mistake(str(error)) from None
    except psycopg.errors.LockNotAvailable:
        found = keeps_a_lock()
        raise Mistake(f"{found}. The remedy: {found.remedy}") from None


@contextmanager
def constraints(
    servers: Servers, tables: Iterable[Table]
) -> Iterator[tuple[Callable[[str], object], list[Constraint]]]:
    """What these tables have, and how a statement that drops one is executed. In a session of its own: psycopg forgets
    its prepared statements in a session that alters a table."""
    with psycopg.connect(servers.database, autocommit=True) as session:
        session.execute("SET lock_timeout = '5s'")
        yield (
            lambda text: session.execute(text.encode()),
            list(of_postgres(session, [each.oid for each in tables])),
        )


def server(
    servers: Servers, of: Any, left_out: Names, level: str = "", by_server: ByServer | None = None
) -> ObservedPostgres:
    """The engine's access to it. `level`: of transactions that do not ask for one."""
    sql = of.contents_sql(left_out, by_server)
    # what is put back is what the setup has made
    written: Names = frozenset(by_server.columns) if by_server else frozenset()
    besides = bool(left_out or written)
    found = ObservedPostgres(servers.database, sql, besides=besides, opening=of, may_make=())
    found.level, found.by_own_clock = level_of(level) if level else None, {*left_out, *written}
    if found.unseen.clocks.virtual:
        found.becomes_timed()
    return found


__all__ = [
    "NOW",
    "constraints",
    "left_as_found",
    "left_open",
    "mark",
    "prepared",
    "server",
    "shadowed",
    "tables",
]
