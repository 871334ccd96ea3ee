"""The contenders: each makes a pair of callables, acquire and release, in its own process."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import redis_lock

from loadtest.bench.locks.servers import BenchServers, bare_connection
from locks import LOCKS, build, find
from locks.fair_lock.questions import packed
from locks.server import LuaScript

Pair = tuple[Callable[[], Any], Callable[[], Any]]
NAME = "bench"
LEASE = 10.0
TOKEN = b"0123456789abcdef:1:10000"


@dataclass(frozen=True)
class Contender:
    name: str
    about: str
    make: Callable[[BenchServers], Pair]


def ours(slug: str, **options: Any) -> Callable[[BenchServers], Pair]:
    """One lock object for all sections."""

    def make(servers: BenchServers) -> Pair:
        lock = LOCKS[slug](NAME + slug, redis=servers.plain.client(), lease=LEASE, **options)  # type: ignore[call-arg]
        return lock.acquire, lock.release

    return make


def anew(slug: str) -> Callable[[BenchServers], Pair]:
    """A new lock object for each section, as in most programs."""

    def make(servers: BenchServers) -> Pair:
        redis, made = servers.plain.client(), list[Any]()

        def acquire() -> None:
            made.append(LOCKS[slug](NAME + slug, redis=redis, lease=LEASE))  # type: ignore[call-arg]
            made[0].acquire()

        return acquire, lambda: made.pop().release()

    return make


def yours(spec: str) -> Callable[[BenchServers], Pair]:
    """A third-party lock: any context manager, with a new one for each section."""

    def make(servers: BenchServers) -> Pair:
        factory, redis, taken = find(spec), servers.plain.client(), list[Any]()

        def acquire() -> None:
            lock = build(factory, NAME + spec, redis=redis, lease=LEASE)
            lock.__enter__()
            taken.append(lock)

        return acquire, lambda: taken.pop().__exit__(None, None, None)

    return make


def redis_py(servers: BenchServers) -> Pair:
    """redis-py's Lock with its default: it polls every 0.1 s."""
    lock = servers.plain.client().lock(NAME + "redis-py", timeout=LEASE)
    return lock.acquire, lock.release


def python_redis_lock(servers: BenchServers) -> Pair:
    lock = redis_lock.Lock(servers.plain.client(), NAME + "python-redis-lock", expire=int(LEASE))
    return lock.acquire, lock.release


def redlock(count: int, servers: BenchServers) -> Pair:
    nodes = [server.client() for server in servers.nodes[:count]]
    lock = LOCKS["redlock"](NAME, redis_nodes=nodes, lease=LEASE)  # type: ignore[call-arg]
    return lock.acquire, lock.release


def replicated(servers: BenchServers) -> Pair:
    lock = LOCKS["replicated"](NAME, redis=servers.replicated.client(), lease=LEASE)  # type: ignore[call-arg]
    return lock.acquire, lock.release


def durable(servers: BenchServers) -> Pair:
    lock = LOCKS["durable"](NAME, redis=servers.durable.client(), lease=LEASE)  # type: ignore[call-arg]
    return lock.acquire, lock.release


def command(*words: bytes) -> list[bytes]:
    return [b"*%d\r\n" % len(words) + packed(*words)]


def script(servers: BenchServers, filename: str, *words: bytes) -> list[bytes]:
    sha = servers.plain.client().script_load(LuaScript(filename).text)
    return command(b"EVALSHA", sha.encode(), *words)


def _prepared(servers: BenchServers, acquire: list[bytes], release: list[bytes]) -> Pair:
    connection: Any = bare_connection(servers.plain)

    def ask(what: list[bytes]) -> None:
        connection.send_packed_command(what)
        connection.read_response()

    return partial(ask, acquire), partial(ask, release)


def _plain(token: bytes = TOKEN) -> tuple[list[bytes], list[bytes]]:
    key = b"bench:floor"
    return command(b"SET", key, token, b"NX", b"PX", b"10000"), command(b"DELIFEQ", key, token)


def floor_plain(servers: BenchServers) -> Pair:
    return _prepared(servers, *_plain())


def floor_fenced(servers: BenchServers) -> Pair:
    acquire = script(
        servers, "fenced_acquire.lua", b"2", b"bench:fenced", b"{bench:fenced}:fence", TOKEN, b"10000"
    )
    return _prepared(servers, acquire, script(servers, "token_release.lua", b"1", b"bench:fenced", TOKEN))


def raw_socket(servers: BenchServers) -> Pair:
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(str(servers.plain.socket))
    acquire, release = (what[0] for what in _plain(b"raw"))

    def ask(what: bytes) -> None:
        connected.sendall(what)
        connected.recv(4096)

    return partial(ask, acquire), partial(ask, release)


FLOOR, FLOOR_PLAIN, OURS = "floor", "floor, no number", "fair-lock"

#: in the order of the table
UNCONTENDED = (
    Contender("raw socket", "SET NX PX, DELIFEQ on a socket without a client library", raw_socket),
    Contender(FLOOR_PLAIN, "SET NX PX, DELIFEQ prepared on a bare redis-py connection", floor_plain),
    Contender(
        FLOOR, "the two scripts of a fenced lock, prepared on a bare redis-py connection", floor_fenced
    ),
    Contender(OURS, "ours", ours("fair-lock")),
    Contender("fair-lock, new object", "ours, a new lock object for each section", anew("fair-lock")),
    Contender("fenced", "token and number, polling", ours("fenced")),
    Contender("token", "SET NX PX, release by Lua", ours("token")),
    Contender("compare-and-delete", "SET NX PX, release by DELIFEQ", ours("compare-and-delete")),
    Contender("token-pubsub", "token, woken by publish/subscribe", ours("token-pubsub")),
    Contender("token-queue", "token, fair queue on wake lists", ours("token-queue")),
    Contender("redlock, 1 node", "", partial(redlock, 1)),
    Contender("redlock, 3 nodes", "", partial(redlock, 3)),
    Contender("redlock, 5 nodes", "", partial(redlock, 5)),
    Contender("replicated", "token, WAIT for one replica", replicated),
    Contender("durable", "token, WAITAOF for the disk", durable),
    Contender("redis-py", "redis.lock.Lock", redis_py),
    Contender("python-redis-lock", "redis_lock.Lock", python_redis_lock),
)
#: peers in environments of their own
FOREIGN = ("redlock-ng", "pottery")

CONTENDED = ("fair-lock", "token-queue", "token-pubsub", "token", "redis-py", "python-redis-lock")
#: how a waiter learns of a release → the contender that does so
WAITING = {
    "hand-over": "fair-lock",
    "queue": "token-queue",
    "publish/subscribe": "token-pubsub",
    "polling": "token",
}


def contender(name: str) -> Contender:
    """Return the contender with this name, or the third-party lock that it names."""
    known = (each for each in UNCONTENDED if each.name == name)
    return next(known, None) or Contender(name, "yours", yours(name))
