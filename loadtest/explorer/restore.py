"""What a strategy keeps on the servers: which tables make a state, how they are emptied, what is shown of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pymysql
import redis
from django.apps import apps
from django.db import connections

from ledger.models import Book
from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.snapshot.postgres import PostgresSnapshot

#: tables that no strategy writes while it applies a posting
_UNTOUCHED = ("ledger_book", "ledger_import")
#: times and thread names, which are not part of the books
_LEFT_OUT = {"read_at", "written_at", "created", "updated", "worker", "holder", "until"}
REDIS_SERVER = "redis"  # the server of that name; the others are the nodes of a Redlock


def tables() -> list[Any]:
    """Return the models that strategies write."""
    models = apps.get_app_config("ledger").get_models()
    return [
        m
        for m in models
        if m._meta.db_table not in _UNTOUCHED and not m._meta.db_table.startswith("ledger_import")
    ]


def own_tables() -> list[str]:
    """The tables of PostgreSQL that belong to no app: a third-party lock has made them, and keeps its rows there."""
    known = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
        names = [name for (name,) in cursor.fetchall()]
    return [
        name for name in names if name not in known and not name.startswith(("django_", "procrastinate_"))
    ]


def indexes() -> set[str]:
    """All indexes of PostgreSQL."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
        return {name for (name,) in cursor.fetchall()}


def drop_indexes(names: Iterable[str]) -> None:
    """Those that a lock has made for tables of others. Those of its own tables go with them."""
    query = "SELECT indexname FROM pg_indexes WHERE indexname = ANY(%s) AND tablename <> ALL(%s)"
    with connections["default"].cursor() as cursor:
        cursor.execute(query, [list(names), own_tables()])
        for (name,) in cursor.fetchall():
            cursor.execute(f'DROP INDEX "{name}"')


def drop_own_tables() -> None:
    """An earlier lock's."""
    with connections["default"].cursor() as cursor:
        for name in own_tables():
            cursor.execute(f'DROP TABLE IF EXISTS "{name}" CASCADE')


def postgres_snapshot() -> PostgresSnapshot:
    """PostgreSQL as it is now: the book is open."""
    names = {*(model._meta.db_table for model in tables()), *own_tables()}
    return PostgresSnapshot(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True), only=names)


def contents_sql(snapshot: PostgresSnapshot) -> str:
    """Return one query for everything that strategies keep in SQL: one column for the state, one with all fields."""
    own = own_tables()
    every = (
        (table.title, column.name)
        for table in snapshot.tables
        for column in table.columns
        if table.title not in own
    )
    return snapshot.contents_sql({(table, column) for table, column in every if column in _LEFT_OUT})


def mariadb_server(looks: bool) -> MariaDBServer:
    """MariaDB as it is now: the book is open. `looks`: as there."""
    address = connections["mariadb"].get_connection_params()
    besides = {"ledger_book", "django_migrations"}
    return MariaDBServer(lambda: pymysql.connect(**address), driver, _LEFT_OUT, besides, looks)


def shown_on_mariadb(server: MariaDBServer) -> dict[str, Any]:
    """The committed balances, and the rows of lock tables."""
    return {
        "balances": dict(server.ask("SELECT number, balance FROM ledger_account ORDER BY number")),
        "rows": dict(server.ask("SELECT name, status FROM ledger_lockrecord ORDER BY name")),
    }


def empty_mariadb() -> None:
    names = ["ledger_book", *(model._meta.db_table for model in tables())]
    with connections["mariadb"].cursor() as cursor:
        cursor.execute("SHOW TABLES")
        there = {name for (name,) in cursor.fetchall()}
        cursor.execute("SET SESSION foreign_key_checks = 0")
        for name in filter(there.__contains__, names):
            cursor.execute(f"TRUNCATE {name}")
        cursor.execute("SET SESSION foreign_key_checks = 1")


def empty(connection: Any, addresses: Iterable[str]) -> None:
    """Delete everything. `addresses`: of the Redis servers."""
    own = (f'"{name}"' for name in own_tables())
    names = ["ledger_book", *(model._meta.db_table for model in tables()), *own]
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("; ".join(f"DELETE FROM {name}" for name in names))  # noqa: S608  (names of our own)
        cursor.execute("SET session_replication_role = origin")
        # as after TRUNCATE, the next job's rows begin at the first place. TRUNCATE takes ten times as long (33 ms): it
        # makes a new file for each table and index
        cursor.execute(f"VACUUM {', '.join(names)}")
    for address in addresses:
        with closing(redis.Redis.from_url(address)) as node:
            node.flushall()


def shown(snapshot: PostgresSnapshot, node: Any, book: Book) -> dict[str, Any]:
    """Return the committed balances and the rows of lock tables, through libpq, which has no gate. `node`: the Redis
    that may keep the accounts."""
    if book.store == "redis":
        return {"balances": dict(_redis_balances(book, node)), "rows": {}}
    balances = _rows(snapshot, "SELECT number, balance FROM ledger_account ORDER BY number")
    return {
        "balances": {name: int(amount) for name, amount in balances},
        "rows": {
            name: int(status)
            for name, status in _rows(snapshot, "SELECT name, status FROM ledger_lockrecord ORDER BY name")
        },
    }


def entries(snapshot: PostgresSnapshot, book: Book) -> list[dict[str, Any]]:
    """The committed entries in the order of their writes, with what each writer had read, and whether the balance
    comes from it. Nothing of a book in Redis, whose entries are no rows."""
    if book.store == "redis":
        return []
    names = ("id", "key", "account", "amount", "before", "after", "parent", "head")
    rows = _rows(
        snapshot,
        "SELECT left(e.id::text, 8), e.key, a.number, e.amount, e.balance_before, e.balance_after,"
        " left(e.parent::text, 8), (a.head = e.id)::text"
        " FROM ledger_entry e JOIN ledger_account a ON a.id = e.account_id ORDER BY e.seq",
    )
    numbers = {"amount", "before", "after"}
    return [
        {name: int(each) if name in numbers else each for name, each in zip(names, row, strict=True)}
        for row in rows
    ]


def _rows(snapshot: PostgresSnapshot, query: str) -> Iterator[tuple[str, ...]]:
    found = snapshot.connection.pgconn.exec_(query.encode())
    for row in range(found.ntuples):
        yield tuple((found.get_value(row, column) or b"").decode() for column in range(found.nfields))


def _redis_balances(book: Book, node: Any) -> Iterator[tuple[str, int]]:
    prefix = f"ledger:{{{book.pk}}}:account:"
    keys: Any = node.keys(prefix + "*")
    for key in sorted(keys):
        yield key.decode().removeprefix(prefix), int(node.hget(key, "balance") or 0)
