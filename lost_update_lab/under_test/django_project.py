"""A Django project on trial: its test database, its caches, and what it keeps in each process.

This is the only module of the library that imports Django. It is imported only for a project that is configured.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from django.apps import apps
from django.conf import settings
from django.core.cache.backends import locmem
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper as PostgresWrapper
from psycopg.conninfo import make_conninfo

from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.bounds import MONOTONIC
from lost_update_lab.runs.place import anywhere, beside
from lost_update_lab.under_test.scenario import Mistake
from lost_update_lab.under_test.servers import REDIS, Servers, embedded_already

_ADDRESS = ("dbname", "user", "password", "host", "port")


def bound() -> dict[str, Any]:
    """What a Race needs for the project of this process. Raises Mistake."""
    if connection.vendor not in ("postgresql", "mysql"):
        raise Mistake(
            f"Django's database is {connection.vendor}: the explorer knows the locks of PostgreSQL and MariaDB. Point "
            "DATABASES to one, or let pytest start a PostgreSQL: `lost_update_lab_servers = embedded` in its "
            "configuration, and DATABASE_URL read in the settings"
        )
    project = DjangoProject()
    return {
        "servers": _servers,
        "frameworks": [project],
        "patches": [project.install],
    }


def _servers() -> Servers:
    if connection.in_atomic_block:
        raise Mistake(
            "the test runs inside of a transaction that is rolled back: no worker would see what the setup does. Use "
            "@pytest.mark.django_db(transaction=True), or Django's TransactionTestCase"
        )
    parameters = connection.get_connection_params()
    if connection.vendor == "mysql":
        return Servers(_mysql(parameters), next(_redis(), "") or embedded_already(REDIS))
    database = make_conninfo(**{name: parameters[name] for name in _ADDRESS if parameters.get(name)})
    return Servers(database, next(_redis(), "") or embedded_already(REDIS))


def _mysql(parameters: dict[str, Any]) -> str:
    """The address of a MariaDB that Django reaches through PyMySQL. Raises Mistake."""
    driver: Any = connection
    if not driver.Database.__name__.startswith("pymysql"):
        raise Mistake(
            "Django reaches its database through mysqlclient, for which there is no gate: call "
            "pymysql.install_as_MySQLdb() before the settings are read"
        )
    user, password = (quote(str(parameters.get(name, "")), safe="") for name in ("user", "password"))
    host = (
        f"{parameters.get('host', '')}:{parameters['port']}"
        if "port" in parameters
        else parameters.get("host", "")
    )
    socket = f"?unix_socket={parameters['unix_socket']}" if "unix_socket" in parameters else ""
    return f"mysql://{user}:{password}@{host}/{parameters['database']}{socket}"


def _redis() -> Iterator[str]:
    for cache in settings.CACHES.values():
        location = cache.get("LOCATION", "")
        location = location[0] if isinstance(location, list | tuple) else location
        if "redis" in str(cache["BACKEND"]).lower() and "://" in str(location):
            yield str(location)


class _Own(threading.local):
    """What one worker keeps, by the names of its databases."""

    def __init__(self) -> None:
        #: its first connection
        self.first: dict[str, Any] = {}
        #: those which it has used in this run
        self.used = set[str]()
        #: those that it has made in its runs. Its next runs get them again: to make a session takes 4 ms
        self.spare: defaultdict[str, list[Any]] = defaultdict(list)


class DjangoProject:
    """Each worker is a process that has just begun: it has its own connections, and an empty cache in its memory."""

    def __init__(self) -> None:
        self._own = _Own()
        self._stores: dict[str, Any] = {}
        if apps.is_installed("django.contrib.contenttypes"):
            from django.contrib.contenttypes.models import ContentType

            with suppress(Exception):  # there is no such table, so no operation asks
                ContentType.objects.get_for_models(*apps.get_models())

    def begin(self) -> None:
        for store in self._stores.values():
            store.clear()

    def begin_worker(self, index: int) -> None:
        self._own.used.clear()
        for each in connections.all(initialized_only=True):
            each.savepoint_state = 0  # names of savepoints are counted
            self._own.first.setdefault(each.alias, each.connection)
            spare = self._own.spare[each.alias]
            spare[:] = [one for one in spare if not _is_closed(one)]

    def _is_left_from_before(self, wrapper: Any) -> bool:
        """A worker is a process that has just begun: it has no such connection yet."""
        return anywhere() is not None and wrapper.alias not in self._own.used

    def settle(self, index: int) -> None:
        """Forget a block that was left halfway, and a lost connection."""
        for each in connections.all(initialized_only=True):
            each.in_atomic_block = each.needs_rollback = each.closed_in_transaction = False
            each.savepoint_ids, each.atomic_blocks, each.run_on_commit = [], [], []
            spare = self._own.spare[each.alias]
            if each.connection is None or _is_closed(each.connection) or each.connection in spare:
                each.connection = self._own.first.get(each.alias)
            if each.connection is not None and _is_closed(each.connection):
                each.connection = None
            each.ensure_connection()
            self._own.first[each.alias] = each.connection
            each.set_autocommit(True)  # of this connection

    def leave(self, index: int) -> None:
        for spare in self._own.spare.values():
            for each in spare:
                each.close()
        connections.close_all()

    def install(self, patches: Patches) -> None:
        """What Django does when it connects belongs to the handshake: no step. A cache in memory is a process's."""
        connect: Any = BaseDatabaseWrapper.connect
        ensure: Any = BaseDatabaseWrapper.ensure_connection
        close_old: Any = BaseDatabaseWrapper.close_if_unusable_or_obsolete
        new: Any = PostgresWrapper.get_new_connection
        make: Any = locmem.LocMemCache.__init__

        def connected(wrapper: Any) -> None:
            self._own.used.add(wrapper.alias)
            with beside():
                connect(wrapper)
            _ages(wrapper)

        def ensured(wrapper: Any) -> None:
            if wrapper.connection is not None and self._is_left_from_before(wrapper):
                self._own.used.add(wrapper.alias)
                _begins(wrapper)
            ensure(wrapper)

        def closed_if_old(wrapper: Any) -> None:
            if not self._is_left_from_before(wrapper):
                close_old(wrapper)

        def connection_of(wrapper: Any, parameters: Any) -> Any:
            if anywhere() is None or wrapper.pool or not self._own.first.get(wrapper.alias):
                return new(wrapper, parameters)
            spare = self._own.spare[wrapper.alias]
            found = next((each for each in spare if not _is_closed(each)), None)
            if found is None:
                spare.append(found := new(wrapper, parameters))
            return found

        def made(cache: Any, name: str, params: Any) -> None:
            place = anywhere()
            make(cache, f"{name} of worker {place.task.worker.index}" if place else name, params)
            if place:
                self._stores[f"{name} {place.task.worker.index}"] = cache

        patches.method(BaseDatabaseWrapper, "connect", connected)
        patches.method(BaseDatabaseWrapper, "ensure_connection", ensured)
        patches.method(BaseDatabaseWrapper, "close_if_unusable_or_obsolete", closed_if_old)
        patches.method(PostgresWrapper, "get_new_connection", connection_of)
        patches.method(locmem.LocMemCache, "__init__", made)


def _begins(wrapper: Any) -> None:
    """As if this connection had been made now."""
    _ages(wrapper)
    wrapper.errors_occurred, wrapper.health_check_done = False, True


def _ages(wrapper: Any) -> None:
    """By the clock that its worker is shown: `close_old_connections()` asks that one. (This is no look at it.)"""
    age, place = wrapper.settings_dict["CONN_MAX_AGE"], anywhere()
    now = MONOTONIC + place.run.now / 1e6 if place else time.monotonic()
    wrapper.close_at = None if age is None else now + age


def _is_closed(raw: Any) -> bool:
    """A connection of psycopg, or of PyMySQL."""
    return bool(raw.closed) if hasattr(raw, "closed") else not raw.open
