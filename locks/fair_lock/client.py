"""What the fair locks of one Redis client share: wires to borrow, and the renewal of held locks."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from functools import lru_cache
from weakref import WeakKeyDictionary, ref

from redis import Redis
from redis.cluster import RedisCluster
from redis.connection import ConnectionPool

from locks.fair_lock.questions import Questions
from locks.fair_lock.renewal import Renewal
from locks.fair_lock.wire import Wire

SPARE = 16  # idle wires that stay open


class FairLockClient:
    """One for each connection pool. `client_for` finds it."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = ref(pool)  # weak: the locks keep the pool alive, and this must not
        self.idle: list[Wire] = []
        #: a cache: a lock object is often created for a single section, and need not pack its questions again
        self.questions = lru_cache(maxsize=1024)(Questions)
        self.quiet = True  # may it send CLIENT REPLY?
        self.generation = _generation
        self.renewal = Renewal(self.new_wire, _generation)
        self.deletes = True  # does the server have DELIFEQ (Valkey 9)?

    def new_wire(self) -> Wire:
        pool = self._pool()
        if pool is None:
            raise ReferenceError("the Redis client of this lock is gone")
        return Wire(pool)

    def borrow(self) -> Wire:
        """Return a wire that no other thread uses until it is given back."""
        try:
            return self.idle.pop()
        except IndexError:
            return self.new_wire()

    def give_back(self, wire: Wire) -> None:
        if len(self.idle) < SPARE:
            self.idle.append(wire)
        else:
            wire.disconnect()

    def start_again(self) -> None:
        """Reset in a forked child: it shares its parent's sockets, and holds none of its parent's locks."""
        self.idle.clear()
        self.questions.cache_clear()
        self.renewal.forget_all()
        self.generation = _generation
        self.renewal = Renewal(self.new_wire, _generation)


_generation = 0  # of this process: a forked child is the next generation
_clients: MutableMapping[ConnectionPool, FairLockClient] = WeakKeyDictionary()


def client_for(redis: Redis | RedisCluster, key: str, *, moved: bool = False) -> FairLockClient:
    """Return the client of the server that has `key`. In a Cluster that is the slot's primary. `moved`: look it up
    again."""
    if isinstance(redis, RedisCluster):
        if moved:
            redis.nodes_manager.initialize()
        redis = redis.get_redis_connection(redis.get_node_from_key(key))  # type: ignore[no-untyped-call]
    pool = redis.connection_pool
    found = _clients.get(pool)
    return found if found is not None else _clients.setdefault(pool, FairLockClient(pool))


def start_again() -> None:
    """Reset every client, as in a process that has just started."""
    global _generation  # noqa: PLW0603
    _generation += 1
    for client in list(_clients.values()):
        client.start_again()


os.register_at_fork(after_in_child=start_again)
