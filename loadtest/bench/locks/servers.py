"""The servers on which the locks are measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from redis.connection import Connection

from loadtest.servers import Valkey

NODES = 5  # for Redlock


@dataclass(frozen=True)
class BenchServers:
    plain: Valkey
    nodes: list[Valkey]
    replicated: Valkey  # a primary with one replica
    durable: Valkey  # append-only file, synced by WAITAOF


@contextmanager
def servers() -> Iterator[BenchServers]:
    """Start servers of our own, which no other program uses."""
    with ExitStack() as stack:
        start = stack.enter_context
        plain = start(Valkey())
        nodes = [start(Valkey()) for _ in range(NODES)]
        primary = start(Valkey(port=0))
        start(Valkey(config={"replicaof": ("127.0.0.1", primary.port)}))
        yield BenchServers(plain, nodes, primary, start(Valkey(persistence="everysec")))


def bare_connection(server: Valkey) -> Connection:
    """Return a redis-py connection without its client, for prepared commands."""
    pool = server.client().connection_pool
    connection: Connection = pool.get_connection()
    vars(connection)["lab_pool"] = pool  # otherwise the pool would close it when it is garbage-collected
    return connection
