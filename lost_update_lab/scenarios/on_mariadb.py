"""A scenario's database is a MariaDB: how it is left as it was found, looked at, and explored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.model.errors import Broken
from lost_update_lab.scenarios.commits import ObservedMariaDB
from lost_update_lab.scenarios.constraints import Constraint, of_mariadb
from lost_update_lab.scenarios.isolation import level_of
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.snapshot.functions import Names
from lost_update_lab.snapshot.mariadb import BEFORE, MariaDBSnapshot
from lost_update_lab.snapshot.mariadb_tables import MariaDBTables
from lost_update_lab.snapshot.postgres import CannotBeRestored
from lost_update_lab.under_test.mariadb import connect, prepared
from lost_update_lab.under_test.scenario import Mistake
from lost_update_lab.under_test.servers import Servers

_OPEN = """
SELECT COALESCE(trx_query, 'a write'), id FROM information_schema.innodb_trx
JOIN information_schema.processlist ON id = trx_mysql_thread_id
WHERE trx_rows_modified > 0 AND db = DATABASE() AND id <> CONNECTION_ID()
"""
#: sessions that are inside of a transaction
_OTHERS = """
SELECT id FROM information_schema.innodb_trx JOIN information_schema.processlist ON id = trx_mysql_thread_id
WHERE db = DATABASE() AND id <> CONNECTION_ID()
"""
#: ready-made invariants quote names as SQL does (invariants.py)
_ANSI = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')"
#: its clock, in UTC
NOW = "SELECT UTC_TIMESTAMP(6)"


def left_open(connection: Any) -> str:
    """The last command of a transaction that is still open, and is ended. "": there is none."""
    rows = _asked(connection, _OPEN)
    for _, session in rows:
        _asked(connection, f"KILL {session}")
    return str(rows[0][0]) if rows else ""


def mark(connection: Any) -> object:
    """A value that differs if something was committed in between: the tables, with the sums of their rows."""
    names = [name for (name,) in _asked(connection, "SHOW TABLES")]
    return _asked(connection, f"CHECKSUM TABLE {', '.join(f'`{each}`' for each in names)}") if names else ()


@contextmanager
def left_as_found(servers: Servers) -> Iterator[None]:
    """At the end, new tables are dropped, and the others hold what they held before."""
    with connect(servers.database) as ours, connect(servers.database) as held:
        try:
            before = MariaDBSnapshot(
                lambda text: _asked(ours, text), lambda text: _asked(held, text), kept=BEFORE
            )
        except CannotBeRestored as error:
            raise Mistake(str(error)) from None
        try:
            yield
        finally:
            try:
                before.restore_all()
            except Broken:
                for (session,) in _asked(ours, _OTHERS):
                    if session != held.thread_id():
                        _asked(ours, f"KILL {session}")
                before.restore_all()
            before.drop()


def tables(servers: Servers) -> MariaDBTables:
    """The database after the setup. Raises Mistake."""
    connection = connect(servers.database)
    _asked(connection, _ANSI)
    return MariaDBTables(lambda text: _asked(connection, text), connection.close)


@contextmanager
def constraints(
    servers: Servers, tables: Iterable[Table]
) -> Iterator[tuple[Callable[[str], object], list[Constraint]]]:
    """What these tables have, and how a statement that drops one is executed."""
    with connect(servers.database) as session:
        _asked(session, "SET SESSION lock_wait_timeout = 5")
        names = {each.oid: each.name for each in tables}
        yield lambda text: _asked(session, text), list(of_mariadb(lambda text: _asked(session, text), names))


def server(
    servers: Servers, of: Any, left_out: Names, level: str = "", by_server: ByServer | None = None
) -> ObservedMariaDB:
    """The engine's access to it. `level`: of transactions that do not ask for one. Raises Mistake."""
    try:
        found = ObservedMariaDB(lambda: connect(servers.database), driver, left_out, looks=True)
    except CannotBeRestored as error:
        raise Mistake(str(error)) from None
    found.by_server = by_server
    found.level = level_of(level).name.replace("_", " ") if level else ""
    return found


def shadowed(connection: Any) -> AbstractContextManager[None]:
    """Nothing is altered: each session's `timestamp` answers also for a DEFAULT."""
    return nullcontext()


def _asked(connection: Any, text: str) -> tuple[tuple[Any, ...], ...]:
    """One round trip beside the gates."""
    return driver.run(connection, text)


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
