"""Locks as a third party would pass them: `--lock tests.loadtest.third_party:right`."""

import asyncio
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event
from typing import Any, cast

from redis import Redis
from redis_lock import Lock


def right(name: str, redis: Redis) -> AbstractContextManager[Any]:
    """redis-py's own lock, given as it comes."""
    return redis.lock(name, timeout=10, sleep=0.01)


def of_a_second(name: str, redis: Redis) -> AbstractContextManager[Any]:
    """Its own lease is shorter than what a book says."""
    return redis.lock(name, timeout=1, sleep=0.01)


def of_a_second_renewed(name: str, redis: Redis) -> AbstractContextManager[Any]:
    """The same, and a thread that renews it."""
    return cast("AbstractContextManager[Any]", Lock(redis, name, expire=1, auto_renewal=True))


@contextmanager
def of_a_generator(name: str, redis: Redis) -> Any:
    """The same, as most people write their own."""
    with redis.lock(name, timeout=10, sleep=0.01):
        yield


@contextmanager
def broken(name: str, redis: Redis) -> Any:
    """Looks like a lock: it writes the key without looking."""
    redis.set(name, 1)
    yield
    redis.delete(name)


@contextmanager
def needs_zookeeper(name: str, zookeeper: str) -> Any:
    yield


@contextmanager
def raising(name: str) -> Any:
    raise RuntimeError("boom in acquire")
    yield


def leaving(name: str) -> AbstractContextManager[Any]:
    """Ends the process, or the thread, that wanted it."""
    raise SystemExit(0)


class WithoutExit:
    """Half a context manager."""

    def __init__(self, name: str) -> None:
        pass

    def __enter__(self) -> None:
        pass


@contextmanager
def failing_release(name: str, redis: Any) -> Any:
    redis.ping()  # a lock that has asked a server is judged by the rehearsal
    yield
    raise RuntimeError("boom in release")


@contextmanager
def raising_later(name: str, redis: Any) -> Any:
    """Asks a server first, and then fails."""
    redis.ping()
    raise RuntimeError("boom in acquire")
    yield


def other_arguments(name: str, key: str) -> AbstractContextManager[Any]:
    """Asks for an argument that the lab does not offer."""
    return nullcontext()


async def a_coroutine(name: str) -> Any:
    """Nearly one of asyncio: the lock comes only when this is awaited."""
    return asyncio.Lock()


#: how often `only_once` was asked for
ASKED = "tests:only-once"


@contextmanager
def only_once(name: str, redis: Redis) -> Any:
    """Works for the first caller, and for none after that."""
    if redis.incr(ASKED) > 1:
        raise RuntimeError("boom in acquire")
    yield


@contextmanager
def never(name: str) -> Any:
    """Not granted as long as anybody waits."""
    Event().wait()
    yield
