"""A MariaDB of the user's, or an embedded one: its address, and whether it may be used for exploring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from lost_update_lab.under_test.scenario import Mistake
from lost_update_lab.under_test.servers import Servers, is_embedded, may_be_emptied, may_be_written

INSTALL = "pip install 'lost-update-lab[mysql]'"
#: what the explorer asks and does there, beside reading and writing rows
RIGHTS = (
    "SHOW ENGINE INNODB STATUS",
    "CREATE DATABASE IF NOT EXISTS explorer_rights",
    "DROP DATABASE explorer_rights",
)


def parameters(url: str) -> dict[str, Any]:
    """Of pymysql.connect(), from `mysql://user@host:port/name?unix_socket=…`, perhaps with a password."""
    parts = urlsplit(url)
    found: dict[str, Any] = {"database": parts.path.lstrip("/"), **dict(parse_qsl(parts.query))}
    found |= {"host": parts.hostname} if parts.hostname else {}
    found |= {"port": parts.port} if parts.port else {}
    found |= {"user": unquote(parts.username)} if parts.username else {}
    found |= {"password": unquote(parts.password)} if parts.password else {}
    found |= {"ssl_disabled": True} if "unix_socket" in found else {}
    return found


def connect(url: str, **options: Any) -> Any:
    """A connection in autocommit. Raises Mistake: PyMySQL is not installed, or nothing answers."""
    try:
        import pymysql
    except ImportError:
        raise Mistake(f"the database is a MariaDB, and PyMySQL is not installed: {INSTALL}") from None
    try:
        return pymysql.connect(**{"autocommit": True, **parameters(url), **options})
    except pymysql.OperationalError as error:
        raise Mistake(f"no MariaDB answers at the given address: {error.args[-1]}") from None


async def connect_async(url: str) -> Any:
    """A connection of asyncio in autocommit. Raises Mistake: aiomysql is not installed."""
    try:
        import aiomysql
    except ImportError:
        raise Mistake(f"the database is a MariaDB, and aiomysql is not installed: {INSTALL}") from None
    given = parameters(url)
    given["db"] = given.pop("database")
    given.pop("ssl_disabled", None)
    return await aiomysql.connect(autocommit=True, **given)


@contextmanager
def prepared(servers: Servers, disposable: bool = False) -> Iterator[Any]:
    """A session of our own, in a database that may be used for exploring. Raises Mistake."""
    with connect(servers.database) as connection:
        if not is_embedded(servers.database):
            _allowed(connection, parameters(servers.database)["database"], disposable)
        if servers.redis and not is_embedded(servers.redis) and not disposable:
            may_be_emptied(servers.redis)
        yield connection


def _allowed(connection: Any, name: str, disposable: bool) -> None:
    if not name:
        raise Mistake("the address names no database: write mysql://user@host/name")
    may_be_written(name, disposable)
    if "MariaDB" not in connection.server_version:
        raise Mistake(
            f"the server is MySQL {connection.server_version}, and the explorer knows MariaDB's clock and locks: give "
            "it a MariaDB, or let it start one (database='mariadb')"
        )
    import pymysql

    for statement in RIGHTS:
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
        except pymysql.MySQLError as error:
            raise Mistake(
                f"the user may not {statement.partition(' IF ')[0]!r} ({error.args[-1]}), and the explorer asks who is "
                "blocked, and keeps the opening rows in a database of its own. Give it a user with ALL ON *.*"
            ) from None
