"""A lock of asyncio, entered by threads: it excludes them, and its loop lasts from the first lock to the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import Barrier
from typing import Any

import pytest
from redis import Redis

from locks import build

THREADS, TIMES = 3, 20


@asynccontextmanager
async def leased(name: str, *, redis: Any) -> AsyncIterator[None]:
    async with redis.lock(name, timeout=30, sleep=0.001):
        yield


def of_this_process(name: str) -> Any:
    return asyncio.Lock()


@asynccontextmanager
async def renewed(name: str) -> AsyncIterator[None]:
    renewal = asyncio.create_task(asyncio.sleep(3600))
    yield
    renewal.cancel()


def test_threads_exclude_each_other(redis_client: Redis) -> None:
    ready = Barrier(THREADS)

    def count() -> None:
        ready.wait()
        for _ in range(TIMES):
            with build(leased, "till", redis=redis_client):
                redis_client.set("count", int(redis_client.get("count") or 0) + 1)

    redis_client.delete("count", "till")
    with ThreadPoolExecutor(THREADS) as threads:
        for done in [threads.submit(count) for _ in range(THREADS)]:
            done.result()
    assert int(redis_client.get("count") or 0) == THREADS * TIMES


def test_one_that_excludes_nobody_is_a_lock_all_the_same() -> None:
    with build(of_this_process, "a"), build(of_this_process, "a"):
        pass


def test_one_that_keeps_a_task_at_work_is_told_in_a_sentence() -> None:
    with pytest.raises(TypeError, match="it keeps an asyncio task at work while it is held"):
        build(renewed, "a").__enter__()


@pytest.mark.parametrize("factory", [lambda name: 42, lambda name: object()])
def test_what_is_no_lock_comes_as_it_is(factory: Callable[..., Any]) -> None:
    assert not hasattr(build(factory, "a"), "__enter__")
