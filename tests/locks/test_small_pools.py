"""Threads that share a client with a small pool: a waiter that blocks in it leaves none to the holder."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import BlockingConnectionPool, Redis

from locks import LOCKS
from locks.errors import LockUnavailable

from .actor import client, eventually


@pytest.fixture
def small(redis_url):
    """One connection, for which others wait 0.2 s."""
    pool = client(redis_url).connection_pool
    return Redis(
        connection_pool=BlockingConnectionPool(
            max_connections=1, timeout=0.2, connection_class=pool.connection_class, **pool.connection_kwargs
        )
    )


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("slug", ["token-queue", "python-redis-lock"])
def test_a_sleeping_waiter_leaves_no_connection_for_the_release(redis_client, small, slug):
    """As their pages say."""
    first, second = (LOCKS[slug]("x", redis=small, lease=10) for _ in range(2))
    first.acquire()
    with ThreadPoolExecutor(1) as other:
        came = other.submit(second.acquire, 4)
        eventually(lambda: redis_client.info("clients")["blocked_clients"], "the second waits")
        with pytest.raises(LockUnavailable, match="No connection available"):
            first.release()
        assert came.result() is False


@pytest.mark.parametrize("slug", ["fair-lock", "token", "fenced", "semaphore", "reentrant-mended"])
def test_one_connection_is_enough_for_all_threads(redis_client, small, slug):
    first, second = (LOCKS[slug]("x", redis=small, lease=10) for _ in range(2))
    first.acquire()
    with ThreadPoolExecutor(1) as other:
        came = other.submit(second.acquire)
        first.release()
        assert came.result(60) is True
