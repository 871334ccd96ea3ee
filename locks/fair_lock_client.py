"""What the fair locks of one Redis client share: wires to borrow, and the renewal of what is held."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary, ref

from redis import Redis
from redis.cluster import RedisCluster
from redis.connection import ConnectionPool

from locks.call import Call
from locks.renewal import Renewal
from locks.wire import Wire

SPARE = 16  # idle wires that are kept open


class FairLockClient:
    """One for each connection pool; found by `client_for`."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = ref(pool)  # the locks keep it alive, this must not
        self._idle: list[Wire] = []
        self.renewal = Renewal(self._new_wire)
        self.generation = 0  # of processes: a forked child is the next one
        self.deletes = True  # has the server DELIFEQ (Valkey 9)?

    def _new_wire(self) -> Wire:
        pool = self._pool()
        if pool is None:
            raise ReferenceError("the Redis client of this lock is gone")
        return Wire(pool)

    def borrow(self) -> Wire:
        """A wire that nobody else uses until it is given back."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._new_wire()

    def give_back(self, wire: Wire) -> None:
        if len(self._idle) < SPARE:
            self._idle.append(wire)
        else:
            wire.disconnect()

    def ask(self, call: Call, word: bytes) -> Any:
        wire = self.borrow()
        try:
            return wire.ask(call, word)
        finally:
            self.give_back(wire)

    def start_anew(self) -> None:
        """In a forked child: it shares its parent's sockets and holds none of its locks."""
        self._idle.clear()
        self.renewal = Renewal(self._new_wire)
        self.generation += 1


_clients: MutableMapping[ConnectionPool, FairLockClient] = WeakKeyDictionary()


def client_for(redis: Redis | RedisCluster, key: str, *, moved: bool = False) -> FairLockClient:
    """The client of the server that has `key`. In a Cluster that is the slot's primary; `moved`: look anew."""
    if isinstance(redis, RedisCluster):
        if moved:
            redis.nodes_manager.initialize()
        redis = redis.get_redis_connection(redis.get_node_from_key(key))  # type: ignore[no-untyped-call]
    pool = redis.connection_pool
    found = _clients.get(pool)
    return found if found is not None else _clients.setdefault(pool, FairLockClient(pool))


def _after_fork() -> None:
    for client in list(_clients.values()):
        client.start_anew()


os.register_at_fork(after_in_child=_after_fork)
