"""A lock of asyncio as callers use it who are threads: the coroutines of its acquire and release run in an event loop
of the calling thread.

    lock("a name", redis=…) → has __aenter__ and __aexit__         each runs in the thread's loop
                            → acquire() and release() are coroutines          the same
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any

import redis.asyncio
from redis import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

#: what a client of redis.asyncio takes over from a synchronous one
_ADDRESS = ("host", "port", "path", "db", "username", "password")
_TASKS = (
    "it keeps an asyncio task at work while it is held, and its callers are threads, whose event loop stands still "
    "meanwhile"
)


class OfAsyncio(AbstractContextManager[Any]):
    """Enters and leaves `lock` in the loop of the calling thread."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __enter__(self) -> Any:
        loop = _loop()
        entered = loop.run(
            self.lock.__aenter__() if hasattr(self.lock, "__aenter__") else self.lock.acquire()
        )
        if loop.at_work():
            raise TypeError(_TASKS)
        return entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        if hasattr(self.lock, "__aexit__"):
            return _loop().run(self.lock.__aexit__(kind, error, trace))
        return _loop().run(self.lock.release())


class _Loop:
    """The event loop of one thread, and the clients that belong to it."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.clients: dict[str, Any] = {}

    def run(self, coroutine: Awaitable[Any] | Any) -> Any:
        async def awaited() -> Any:
            return await coroutine if inspect.isawaitable(coroutine) else coroutine

        return self.runner.run(awaited())

    def at_work(self) -> bool:
        return bool(asyncio.all_tasks(self.runner.get_loop()))

    def client(self, of: Redis) -> Any:
        """A client of redis.asyncio for the same server. Like the other one, it never re-sends a command."""
        pool = of.connection_pool
        address = {name: pool.connection_kwargs[name] for name in _ADDRESS if name in pool.connection_kwargs}
        if (key := repr(address)) not in self.clients:
            kind = getattr(redis.asyncio, pool.connection_class.__name__)
            made = redis.asyncio.ConnectionPool(connection_class=kind, retry=Retry(NoBackoff(), 0), **address)
            self.clients[key] = redis.asyncio.Redis.from_pool(made)
        return self.clients[key]

    def __del__(self) -> None:
        for client in self.clients.values():
            self.run(client.aclose())
        self.runner.close()


class _Thread(threading.local):
    loop: _Loop | None = None


_thread = _Thread()


def _loop() -> _Loop:
    if _thread.loop is None:
        _thread.loop = _Loop()
    return _thread.loop


def is_of_asyncio(factory: Any) -> bool:
    """Does its definition show that it gives a lock of asyncio? (`@asynccontextmanager`, a class with `__aenter__`)"""
    while isinstance(factory, partial):
        factory = factory.func
    if isinstance(factory, type):
        return hasattr(factory, "__aenter__") and not hasattr(factory, "__enter__")
    return inspect.isasyncgenfunction(inspect.unwrap(factory))


def clients(offered: Mapping[str, Any]) -> dict[str, Any]:
    """The same resources, with clients of redis.asyncio for this thread."""
    return {name: _of_asyncio(each) for name, each in offered.items()}


def _of_asyncio(offered: Any) -> Any:
    if isinstance(offered, Redis):
        return _loop().client(offered)
    return [_of_asyncio(each) for each in offered] if isinstance(offered, list) else offered


def for_threads(lock: Any) -> Any:
    """A lock of asyncio as a context manager; any other object as it is."""
    enters = hasattr(lock, "__aenter__") and hasattr(lock, "__aexit__")
    if not hasattr(lock, "__enter__") and (enters or _awaited(lock)):
        return OfAsyncio(lock)
    return lock


def _awaited(lock: Any) -> bool:
    return all(inspect.iscoroutinefunction(getattr(lock, name, None)) for name in ("acquire", "release"))
