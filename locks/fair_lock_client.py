"""What the fair locks of one Redis client share: wires to borrow, and the renewal of what is held."""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from typing import TypeVar
from weakref import WeakKeyDictionary, ref

from redis import Redis
from redis.cluster import RedisCluster
from redis.connection import ConnectionPool
from redis.exceptions import MovedError, RedisError

from locks.renewal import Renewal
from locks.server import typed_errors
from locks.wire import Wire

T = TypeVar("T")
SPARE = 16  # idle wires that are kept open


class FairLockClient:
    """One for each connection pool; found by `shared`."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = ref(pool)  # the locks keep it alive, this must not
        self._idle: list[Wire] = []
        self.renewal = Renewal(self.new_wire)
        self.generation = 0  # of processes: a forked child is the next one

    def new_wire(self) -> Wire:
        pool = self._pool()
        if pool is None:
            raise ReferenceError("the Redis client of this lock is gone")
        return Wire(pool)

    def lend(self, use: Callable[[Wire], T]) -> T:
        """Return `use(wire)`, with a wire that nobody else uses meanwhile."""
        try:
            wire = self._idle.pop()
        except IndexError:
            wire = self.new_wire()
        try:
            return use(wire)
        finally:
            if len(self._idle) < SPARE:
                self._idle.append(wire)
            else:
                wire.disconnect()

    def start_anew(self) -> None:
        """In a forked child: it shares its parent's sockets and holds none of its locks."""
        self._idle.clear()
        self.renewal = Renewal(self.new_wire)
        self.generation += 1


class Home:
    """Where one lock lives: the server that has its key, and this process's share of it."""

    def __init__(self, redis: Redis | RedisCluster, name: str) -> None:
        self._redis, self._name = redis, name
        self._find()

    def _find(self) -> None:
        redis = self._redis
        if isinstance(redis, RedisCluster):
            redis = redis.get_redis_connection(redis.get_node_from_key(self._name))  # type: ignore[no-untyped-call]
        self.client = shared(redis.connection_pool)

    def lend(self, use: Callable[[Wire], T]) -> T:
        """As FairLockClient.lend; in a Cluster it follows the key. Raises the errors of locks.errors."""
        try:
            try:
                return self.client.lend(use)
            except MovedError:
                assert isinstance(self._redis, RedisCluster)
                self._redis.nodes_manager.initialize()
                self._find()
                return self.client.lend(use)
        except RedisError as error:
            with typed_errors(self._name):
                raise error


_clients: MutableMapping[ConnectionPool, FairLockClient] = WeakKeyDictionary()


def shared(pool: ConnectionPool) -> FairLockClient:
    found = _clients.get(pool)
    return found if found is not None else _clients.setdefault(pool, FairLockClient(pool))


def _after_fork() -> None:
    for client in list(_clients.values()):
        client.start_anew()


os.register_at_fork(after_in_child=_after_fork)
