"""Each worker stands for a process, so each gets a pool of its own in place of one that the process keeps.

A pool in the user's module is one object in the explorer's process. Workers would pass its connections to each other,
and a crash of one worker would take another's connection. So a worker that asks such a pool gets a twin of its own.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import signature
from typing import Any
from weakref import ref

import psycopg
import redis

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates import clocks
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import anywhere, beside


class Twins:
    """The workers' own pools, by the pool of the process and the number of the worker."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], Any] = {}
        self._kept: dict[int, Any] = {}  # so that no other pool gets its id

    def of(self, pool: Any, make: Any) -> Any | None:
        """The worker's twin. None: no worker asks, or the pool is a worker's own already."""
        place = anywhere()
        if place is None or any(pool is twin for twin in self._made.values()):
            return None
        key = id(pool), place.task.worker.index
        if key not in self._made:
            self._kept[id(pool)] = pool
            self._made[key] = make()
        return self._made[key]

    def begin(self, index: int) -> None:
        """A run of this worker begins. What a twin still lends is of a run that was cut short, as in a generator that
        nobody ends: the pool would be used up by and by."""
        self._made = {key: twin for key, twin in self._made.items() if key[1] != index or not _lends(twin)}

    def close(self, index: int) -> None:
        for (_, owner), twin in self._made.items():
            if owner == index:
                close = getattr(twin, "disconnect", None) or getattr(twin, "dispose", None) or twin.close
                close()

    def install(self, patches: Patches) -> None:
        _redis_pools(patches, self)
        if "psycopg_pool" in sys.modules:
            _psycopg_pools(patches, self)
        if "sqlalchemy" in sys.modules:
            _sqlalchemy_pools(patches, self)


def _lends(pool: Any) -> int:
    """How many connections of an SQLAlchemy pool are not given back."""
    return pool.checkedout() if hasattr(pool, "checkedout") else 0


def _redis_pools(patches: Patches, twins: Twins) -> None:
    pool_of = redis.ConnectionPool
    get: Any = pool_of.get_connection
    release: Any = pool_of.release
    owners: dict[int, Any] = {}

    def get_connection(pool: Any, *args: Any, **keywords: Any) -> Any:
        if (twin := twins.of(pool, partial(_like, pool))) is None:
            return get(pool, *args, **keywords)
        connection = get(twin, *args, **keywords)
        owners[id(connection)] = twin
        return connection

    def release_connection(pool: Any, connection: Any) -> None:
        release(owners.get(id(connection), pool), connection)

    patches.method(pool_of, "get_connection", get_connection)
    patches.method(pool_of, "release", release_connection)


def _like(pool: Any) -> Any:
    """A new pool like this one. That of a Sentinel takes more than its connections do. It stays as it is: where it
    connects to, it first asks a server that the explorer was not given, and that is told."""
    settings = {"connection_class": pool.connection_class, "max_connections": pool.max_connections}
    settings |= pool.connection_kwargs
    try:
        signature(type(pool)).bind(**settings)
    except TypeError:
        return pool
    return type(pool)(**settings)


TOO_SMALL = (
    "the pool is too small: the operation holds all its connections ({held}), and asks for one more. Give it "
    "max_size={more}, or let the operation hold one at a time"
)


class _Connections:
    """A psycopg_pool without its threads, which make and check connections at times of their own. As there, the
    connection that has been free for the longest is lent: two in a row are two sessions, where there are as many."""

    def __init__(self, pool: Any) -> None:
        from psycopg_pool import NullConnectionPool

        self.pool, self.free = pool, deque[Any]()
        self.closes = isinstance(pool, NullConnectionPool)
        self.comes_back = threading.Condition()
        self.lent: dict[int, int] = {}  # the id of a connection → the thread that has it

    def get(self, timeout: float | None = None) -> Any:
        with self.comes_back:
            if not self._lends() and set(self.lent.values()) == {threading.get_ident()}:
                raise self._timeout(TOO_SMALL.format(held=self.pool.max_size, more=self.pool.max_size + 1))
            seconds = self.pool.timeout if timeout is None else timeout
            if not self.comes_back.wait_for(self._lends, seconds):
                raise self._timeout(f"couldn't get a connection after {seconds:.2f} sec")
            connection = self._free()
            self.lent[id(connection)] = threading.get_ident()
        return connection

    def _lends(self) -> bool:
        """A NullConnectionPool may have no limit."""
        return not self.pool.max_size or len(self.lent) < self.pool.max_size

    @staticmethod
    def _timeout(text: str) -> Exception:
        """The pool's own error, at once if the thread that would wait is the one to give a connection back."""
        from psycopg_pool import PoolTimeout

        return PoolTimeout(text)

    def _free(self) -> Any:
        self.free = deque(each for each in self.free if not each.closed)
        connection = self.free.popleft() if self._is_full() else self._new()
        return connection if self._passes(connection, "_check") else self._free()

    def _passes(self, connection: Any, hook: str) -> bool:
        """A connection for which `check` or `reset` raises an error is closed, and another one is made."""
        try:
            if ask := getattr(self.pool, hook, None):
                ask(connection)
        except Exception:  # noqa: BLE001  (as psycopg_pool does)
            connection.close()
        return not connection.closed

    def _is_full(self) -> bool:
        """The pool has made `min_size` connections before its first one is asked for."""
        return bool(self.free) and len(self.free) + len(self.lent) >= self.pool.min_size

    def _new(self) -> Any:
        with beside():
            conninfo, keywords = self.pool.conninfo, self.pool.kwargs or {}
            conninfo = conninfo() if callable(conninfo) else conninfo
            keywords = keywords() if callable(keywords) else keywords
            connection = self.pool.connection_class.connect(conninfo, **keywords)
            if configure := getattr(self.pool, "_configure", None):
                configure(connection)
        driver.belongs_to(connection, self)
        return connection

    def put(self, connection: Any) -> None:
        if (
            not connection.closed
            and connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE
        ):
            connection.rollback()
        if not connection.closed and self._passes(connection, "_reset") and self.closes:
            connection.close()
        with self.comes_back:
            self.lent.pop(id(connection), None)
            self.free.append(connection)
            self.comes_back.notify()

    #: what Django calls, also when the gates are gone
    putconn = put

    def close(self) -> None:
        for connection in self.free:
            driver.belongs_to(connection, None)
            connection.close()


def _psycopg_pools(patches: Patches, twins: Twins) -> None:
    import psycopg_pool

    def twin_of(pool: Any) -> Any:
        """None: no worker asks."""
        if not _made_now(pool):
            return twins.of(pool, lambda: _Connections(pool))
        pool.explorer_twin = getattr(pool, "explorer_twin", None) or _Connections(pool)
        return pool.explorer_twin

    _lend(patches, psycopg_pool.ConnectionPool, twin_of)
    _open(patches, psycopg_pool.ConnectionPool, twin_of)


def _lend(patches: Patches, pool_of: Any, twin_of: Callable[[Any], Any]) -> None:
    """A worker borrows from the twin."""
    getconn, putconn, connection = pool_of.getconn, pool_of.putconn, pool_of.connection

    def get(pool: Any, timeout: float | None = None) -> Any:
        twin = twin_of(pool)
        return getconn(pool, timeout) if twin is None else twin.get(timeout)

    def put(pool: Any, conn: Any) -> None:
        twin = twin_of(pool)
        putconn(pool, conn) if twin is None else twin.put(conn)

    @contextmanager
    def borrowed(pool: Any, timeout: float | None = None) -> Iterator[Any]:
        if anywhere() is None:
            with connection(pool, timeout) as conn:
                yield conn
            return
        conn = get(pool, timeout)
        try:
            with _as_psycopg(conn):
                yield conn
        finally:
            put(pool, conn)

    patches.method(pool_of, "getconn", get)
    patches.method(pool_of, "putconn", put)
    patches.method(pool_of, "connection", borrowed)


def _open(patches: Patches, pool_of: Any, twin_of: Callable[[Any], Any]) -> None:
    """In a worker a pool begins no threads: its twin connects when it is asked for a connection."""
    begin, closed = pool_of.__init__, pool_of.close

    def made(pool: Any, *args: Any, **keywords: Any) -> None:
        pool.explorer_made = _maker()
        begin(pool, *args, **keywords)

    def beside_its_threads(plain: Any) -> Any:
        def done(pool: Any, *args: Any, **keywords: Any) -> None:
            if anywhere() is None:
                plain(pool, *args, **keywords)

        return done

    def close(pool: Any, *args: Any, **keywords: Any) -> None:
        if (twin := twin_of(pool)) is None:
            closed(pool, *args, **keywords)
        else:
            twin.close()

    patches.method(pool_of, "__init__", made)
    for name in ("open", "_open", "wait"):
        patches.method(pool_of, name, beside_its_threads(getattr(pool_of, name)))
    patches.method(pool_of, "close", close)


@contextmanager
def _as_psycopg(connection: Any) -> Iterator[None]:
    """`with connection:` without its close: commit, or roll back what raised."""
    try:
        yield
    except BaseException:
        if not connection.closed:
            connection.rollback()
        raise
    connection.commit()


def _maker() -> Any:
    """The schedule and the worker in which something is made. None: in none."""
    place = anywhere()
    return place and (ref(place.run), place.task.worker.index)


def _made_now(thing: Any) -> bool:
    """Has this worker made it in this schedule? Then it is its own, and ends with it."""
    place, made = anywhere(), getattr(thing, "explorer_made", None)
    return bool(place and made and (made[0]() is place.run) and made[1] == place.task.worker.index)


def _sqlalchemy_pools(patches: Patches, twins: Twins) -> None:
    """A schedule that is cut short makes the pool connect again: a handshake, and no step."""
    from sqlalchemy.pool import Pool, base

    pool_of: Any = Pool
    record: Any = base._ConnectionRecord
    connect, shake_hands, lend = pool_of.connect, record._ConnectionRecord__connect, record.get_connection

    creator: Any = pool_of._creator

    def made(pool: Any, creates: Any) -> None:
        """Its `__init__` sets this. That is not replaced: SQLAlchemy looks there which arguments there are."""
        creator.fset(pool, creates)
        pool.explorer_made = _maker()

    def connect_own(pool: Any) -> Any:
        twin = None if _made_now(pool) else twins.of(pool, pool.recreate)
        return connect(pool if twin is None else twin)

    def shaken(entry: Any) -> None:
        with beside():
            shake_hands(entry)
        entry.explorer_made = _maker()

    def lent(entry: Any) -> Any:
        """A worker is a process that has just begun: it neither pings its first connection, nor looks how old it is
        (pool_pre_ping, pool_recycle)."""
        if anywhere() is None or entry.dbapi_connection is None or _made_now(entry):
            return lend(entry)
        entry.explorer_made, entry.fresh = _maker(), True
        with beside():
            entry.starttime = time.time()
        return entry.dbapi_connection

    patches.method(pool_of, "_creator", creator.setter(made))
    patches.method(pool_of, "connect", connect_own)
    patches.method(record, "_ConnectionRecord__connect", shaken)
    patches.method(record, "get_connection", lent)
    patches.method(
        clocks, "DIARIES", (*clocks.DIARIES, "sqlalchemy.engine")
    )  # how long ago it compiled a statement
