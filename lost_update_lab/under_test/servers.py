"""The servers of a scenario: embedded ones, started once in a process, or the user's own."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import redis

from lost_update_lab.under_test.scenario import Mistake

DATABASE, REDIS, EMBEDDED_MARIADB = "DATABASE_URL", "REDIS_URL", "mariadb"
#: the user has said that the servers may be emptied
DISPOSABLE = "LOST_UPDATE_LAB_DISPOSABLE"
INSTALL = "pip install 'lost-update-lab[servers]', or set DATABASE_URL and REDIS_URL to servers of your own"
OLDEST = 170_000
#: "test" as a word of a name: test_shop, shop-tests, and not contest
_TEST = re.compile(r"(^|[^a-z])test(s|ing)?([^a-z]|$)", re.IGNORECASE)

_embedded: dict[str, str] = {}
_owners: list[int] = []


@dataclass(frozen=True, slots=True)
class Servers:
    """Addresses. `redis` "": there is none."""

    database: str
    redis: str

    @property
    def on_mariadb(self) -> bool:
        dialect, _, client = self.database.partition("://")[0].partition("+")
        return dialect in ("mysql", "mariadb") and client in ("", "pymysql", "aiomysql")


def embedded(name: str) -> str:
    """The address of this process's PostgreSQL, MariaDB or Valkey, which is started when it is first asked for."""
    if (
        os.getpid() not in _owners
    ):  # a forked process has its own servers: two processes would reset each other's rows
        _embedded.clear()
        _owners[:] = [os.getpid()]
    if name not in _embedded:
        made = _mariadb() if name == EMBEDDED_MARIADB else _of_wheel(name)
        made.start()
        atexit.register(_close, made, os.getpid())
        _embedded[name] = made.url
    return _embedded[name]


def _of_wheel(name: str) -> Any:
    try:
        from lost_update_lab.embedded.postgres import EXPLORED_SETTINGS, Postgres
        from lost_update_lab.embedded.valkey import Valkey
    except ImportError as missing:
        raise Mistake(f"no server was given, and {missing.name} is not installed: {INSTALL}") from None
    return Postgres(settings=EXPLORED_SETTINGS) if name == DATABASE else Valkey()


def _mariadb() -> Any:
    try:
        from lost_update_lab.embedded import mariadb
    except ImportError:
        raise Mistake("PyMySQL is not installed: pip install 'lost-update-lab[mysql]'") from None
    if reason := mariadb.available():
        raise Mistake(f"MariaDB cannot be started here: {reason}, or set DATABASE_URL to one of your own")
    return mariadb.MariaDB(settings=mariadb.EXPLORED_OPTIONS)


def is_embedded(url: str) -> bool:
    """Is it a server that this process has started?"""
    return url in _embedded.values()


def _close(server: Any, owner: int) -> None:
    if os.getpid() == owner:
        server.close()


def embedded_already(name: str) -> str:
    """The same, if it runs. "": it does not."""
    return _embedded.get(name, "") if os.getpid() in _owners else ""


def choose(database: str = "", keys: str = "") -> Servers:
    """The servers that are given, or those of the environment, or else embedded ones. `database`, or DATABASE_URL,
    "mariadb": an embedded MariaDB."""
    given = os.environ.get(DATABASE)
    ours = (EMBEDDED_MARIADB, *_embedded.values())
    if given and not database and given not in ours and os.environ.get("PYTEST_XDIST_WORKER"):
        raise Mistake(
            "pytest-xdist runs tests side by side, and all of them were given one database: they would reset it under "
            "each other. Unset DATABASE_URL, so that each process starts servers of its own, or run without -n"
        )
    wanted = database or given or DATABASE
    found = embedded(wanted) if wanted in (EMBEDDED_MARIADB, DATABASE) else wanted
    return Servers(found, keys or os.environ.get(REDIS) or embedded(REDIS))


def check_redis(servers: Servers) -> None:
    """Raises Mistake if nobody answers there."""
    if not servers.redis:
        return
    try:
        with redis.Redis.from_url(servers.redis) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        where = re.sub("//[^/]*@", "//", servers.redis)  # without its password
        raise Mistake(
            f"Redis cannot be used at {where}: {str(error).rstrip('.')}. Start that server, or unset REDIS_URL: "
            "then an embedded one is started"
        ) from None


@contextmanager
def known_by_environment(servers: Servers) -> Iterator[None]:
    """In this block DATABASE_URL and REDIS_URL say where they are."""
    before = {name: os.environ.get(name) for name in (DATABASE, REDIS)}
    os.environ.update({DATABASE: servers.database, REDIS: servers.redis})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def prepared(servers: Servers, disposable: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """A superuser's session of our own, in a database that may be used for exploring. Raises Mistake."""
    try:
        connection = psycopg.connect(servers.database, autocommit=True)
    except psycopg.OperationalError as error:
        raise Mistake(f"no PostgreSQL answers at the given address: {str(error).strip()}") from None
    except psycopg.ProgrammingError:
        raise Mistake(
            f"{servers.database!r} is no address of PostgreSQL. One looks like postgresql://me@localhost/shop_test"
        ) from None
    with ExitStack() as stack:
        stack.enter_context(connection)
        if servers.database not in _embedded.values():
            _allowed(connection, disposable)
        if servers.redis and servers.redis not in _embedded.values() and not disposable:
            may_be_emptied(servers.redis)
        name = psycopg.sql.Identifier(connection.info.dbname)
        patient = "ALTER DATABASE {} SET deadlock_timeout = '1h'", "ALTER DATABASE {} RESET deadlock_timeout"
        set_, reset = (psycopg.sql.SQL(each).format(name) for each in patient)
        connection.execute(
            set_
        )  # of two that wait for each other, either may be aborted: the schedule says which
        stack.callback(connection.execute, reset)
        yield connection


def _allowed(connection: psycopg.Connection[Any], disposable: bool) -> None:
    may_be_written(connection.info.dbname, disposable)
    needed, found = (version // 10_000 for version in (OLDEST, connection.info.server_version))
    if found < needed:
        raise Mistake(f"PostgreSQL {needed} or newer is needed, this is {found}")
    row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    if not row or not row[0]:
        raise Mistake(
            f"the role {connection.info.user!r} is no superuser, and the explorer stops deadlock time-outs, triggers "
            "and foreign keys while it resets. Give it a superuser's address, or let it start a server of its own"
        )


def may_be_written(name: str, disposable: bool) -> None:
    """Is the database of this name one for tests, or has the user said that it may be written? Raises Mistake."""
    if not _TEST.search(name) and not disposable and os.environ.get(DISPOSABLE) != "1":
        raise Mistake(
            f"the database {name!r} is not touched: its name says nothing of a test, and each schedule would write "
            f"to it. Give a test database (shop_test), or say disposable=True (or {DISPOSABLE}=1)"
        )


def may_be_emptied(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        if (keys := client.dbsize()) and os.environ.get(DISPOSABLE) != "1":
            raise Mistake(
                f"the Redis holds {keys} keys and is not touched: each schedule would empty it. Give an empty database "
                f"of it (redis://…/15), or say disposable=True (or {DISPOSABLE}=1)"
            )
