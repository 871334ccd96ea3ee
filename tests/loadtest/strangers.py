"""Locks as somebody else would hand them in: `--lock tests.loadtest.strangers:right`."""

from contextlib import AbstractContextManager, contextmanager
from typing import Any

from redis import Redis


def right(name: str, redis: Redis) -> AbstractContextManager[Any]:
    """redis-py's own lock, given as it comes."""
    return redis.lock(name, timeout=10, sleep=0.01)


@contextmanager
def broken(name: str, redis: Redis) -> Any:
    """Looks like a lock: it writes the key, and asks nobody."""
    redis.set(name, 1)
    yield
    redis.delete(name)


@contextmanager
def needs_zookeeper(name: str, zookeeper: str) -> Any:
    yield
