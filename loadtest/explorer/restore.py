"""The opening state, and how to restore it cheaply before each schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pymysql
import redis
from django.apps import apps
from django.db import connections

from ledger.models import Book
from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres.server import NAME

#: tables that no strategy writes while it applies a posting
_UNTOUCHED = ("ledger_book", "ledger_import")
#: times and thread names, which are not part of the books
_LEFT_OUT = {"read_at", "written_at", "created", "updated", "worker", "holder", "until"}
VACUUM_EVERY = 300


def tables() -> list[Any]:
    """Return the models that strategies write."""
    models = apps.get_app_config("ledger").get_models()
    return [
        m
        for m in models
        if m._meta.db_table not in _UNTOUCHED and not m._meta.db_table.startswith("ledger_import")
    ]


def contents_sql() -> str:
    """Return one query for everything that strategies keep in SQL: one column for the state, one with all fields."""
    parts = []
    for left_out in (_LEFT_OUT, set()):
        arrays = []
        for model in tables():
            table, key = model._meta.db_table, model._meta.pk.column
            columns = ", ".join(f.column for f in model._meta.concrete_fields if f.column not in left_out)
            arrays.append(
                f"(SELECT array_agg(t::text ORDER BY {key}) FROM (SELECT {columns} FROM {table}) t)"  # noqa: S608  (names of our own models)
            )
        parts.append(f"ROW({', '.join(arrays)})::text")
    return "SELECT " + ", ".join(parts)


def mariadb_server() -> MariaDBServer:
    """MariaDB as it is now: the book is open."""
    address = connections["mariadb"].get_connection_params()
    besides = {"ledger_book", "django_migrations"}
    return MariaDBServer(lambda: pymysql.connect(**address), driver, _LEFT_OUT, besides)


def shown(server: MariaDBServer) -> dict[str, Any]:
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


def empty(connection: Any, nodes: Mapping[str, redis.Redis]) -> None:
    """Delete everything."""
    names = ", ".join(["ledger_book", *(model._meta.db_table for model in tables())])
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(f"TRUNCATE {names} CASCADE")
        cursor.execute("SET session_replication_role = origin")
    for node in nodes.values():
        node.flushall()


class Opening:
    """The servers as they are now. `nodes`: the Redis servers, whose keys are kept in the format of DUMP."""

    def __init__(self, connection: Any, nodes: Mapping[str, redis.Redis]) -> None:
        connection.ensure_connection()
        self._raw = connection.connection.pgconn
        self._statement = self._prepare()
        self._nodes = [
            (name, node, [(key, node.dump(key)) for key in node.keys("*")]) for name, node in nodes.items()
        ]
        #: for the commands before each schedule: going through a client would take longer than the commands themselves
        self._connections = {name: node.connection_pool.get_connection() for name, node in nodes.items()}
        self._since_vacuum = 0

    def _prepare(self) -> bytes:
        """Create a function that restores the tables: those with rows get them back, the others are emptied.

        Triggers and foreign keys stay off in this session until `empty` is called again. Switching them each time would
        drop every cached plan.
        """
        parts = []
        for model in tables():
            table = model._meta.db_table
            self._run(
                f"CREATE SCHEMA IF NOT EXISTS opening; DROP TABLE IF EXISTS opening.{table}; "  # noqa: S608  (names of our own models)
                f"CREATE TABLE opening.{table} AS SELECT * FROM {table}"
            )
            parts.append(f"DELETE FROM {table}")  # noqa: S608  (names of our own models)
            if model.objects.exists():
                parts.append(f"INSERT INTO {table} SELECT * FROM opening.{table}")  # noqa: S608  (names of our own models)
        parts += [f"PERFORM setval('{name}', {value}, {called})" for name, value, called in self._sequences()]
        self._run("SET session_replication_role = replica")
        self._run(
            "CREATE OR REPLACE FUNCTION opening.restore() RETURNS void LANGUAGE plpgsql AS "
            f"$$ BEGIN {'; '.join(parts)}; END $$"
        )
        return b"SELECT opening.restore()"

    def _run(self, statements: str | bytes) -> None:
        done = self._raw.exec_(statements.encode() if isinstance(statements, str) else statements)
        if done.error_message:
            raise RuntimeError(f"restoring the opening state: {done.error_message.decode()}")

    def shown(self, book: Book) -> dict[str, Any]:
        """Return the committed balances and the rows of lock tables, through libpq, which has no gate."""
        if book.store == "redis":
            return {"balances": dict(_redis_balances(book, self._nodes[0][1])), "rows": {}}
        return {
            "balances": dict(self._rows("SELECT number, balance FROM ledger_account ORDER BY number")),
            "rows": dict(self._rows("SELECT name, status FROM ledger_lockrecord ORDER BY name")),
        }

    def entries(self, book: Book) -> list[dict[str, Any]]:
        """The committed entries in the order of their writes, with what each writer had read, and whether the balance
        comes from it. Nothing of a book in Redis, whose entries are no rows."""
        if book.store == "redis":
            return []
        names = ("id", "key", "account", "amount", "before", "after", "parent", "head")
        found = self._raw.exec_(
            b"SELECT left(e.id::text, 8), e.key, a.number, e.amount, e.balance_before, e.balance_after,"
            b" left(e.parent::text, 8), (a.head = e.id)::text"
            b" FROM ledger_entry e JOIN ledger_account a ON a.id = e.account_id ORDER BY e.seq"
        )
        rows = [
            [(found.get_value(row, column) or b"").decode() for column in range(len(names))]
            for row in range(found.ntuples)
        ]
        numbers = {"amount", "before", "after"}
        return [
            {name: int(each) if name in numbers else each for name, each in zip(names, row, strict=True)}
            for row in rows
        ]

    def _sequences(self) -> Iterator[tuple[str, str, str]]:
        """Yield the sequences with their values, which are reset. Otherwise rows would get new ids in each schedule."""
        names = self._raw.exec_(
            b"SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1"
        )
        for row in range(names.ntuples):
            name = (names.get_value(row, 0) or b"").decode()
            found = self._raw.exec_(f"SELECT last_value, is_called FROM {name}".encode())  # noqa: S608  (as above)
            value, called = (found.get_value(0, column).decode() for column in (0, 1))
            yield name, value, {"t": "true", "f": "false"}[called]

    def _rows(self, query: str) -> Iterator[tuple[str, int]]:
        found = self._raw.exec_(query.encode())
        for row in range(found.ntuples):
            yield found.get_value(row, 0).decode(), int(found.get_value(row, 1))

    def restore(self, changed: Collection[str]) -> None:
        """Restore the opening state. `changed`: the servers that a run has changed."""
        if NAME in changed:
            self._run(self._statement)
        self._since_vacuum += 1
        if self._since_vacuum >= VACUUM_EVERY:  # each run leaves dead rows, which slow down the next ones
            self._since_vacuum = 0
            for model in tables():
                self._run(f"VACUUM {model._meta.db_table}")
        for name, _node, keys in self._nodes:
            if name not in changed:
                continue
            commands: list[tuple[Any, ...]] = [
                ("FLUSHALL",),
                *(("RESTORE", key, 0, value) for key, value in keys),
            ]
            connection = self._connections[name]
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            for _ in commands:
                connection.read_response()


def _redis_balances(book: Book, node: redis.Redis) -> Iterator[tuple[str, int]]:
    prefix = f"ledger:{{{book.pk}}}:account:"
    keys: Any = node.keys(prefix + "*")
    for key in sorted(keys):
        yield key.decode().removeprefix(prefix), int(node.hget(key, "balance") or 0)
