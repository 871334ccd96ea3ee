"""A lock of asyncio on trial (`--lock`): the same verdicts as its synchronous twin."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from locks.of_asyncio import clients
from tests.lost_update_lab.command.trials import GetThenSetAsyncio


def of_redis(name: str, redis: Any) -> Any:
    return redis.lock(name, timeout=5, sleep=1)


@asynccontextmanager
async def of_redis_asyncio(name: str, redis: Any) -> AsyncIterator[None]:
    async with redis.lock(name, timeout=5, sleep=1):
        yield


@contextmanager
def get_then_set(name: str, redis: Any) -> Iterator[None]:
    while redis.get(name):
        time.sleep(1)
    redis.set(name, 1)
    yield
    redis.delete(name)


def get_then_set_asyncio(name: str, redis: Any) -> GetThenSetAsyncio:
    """A plain function may return a lock of asyncio, with a client of its own."""
    return GetThenSetAsyncio(name, clients({"redis": redis})["redis"])


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("lock", ["get_then_set", "of_redis"])
def test_it_comes_out_as_its_twin(lock: str) -> None:
    jobs = [Job(strategy=f"{__name__}:{name}") for name in (lock, f"{lock}_asyncio")]
    with Lanes(1) as lanes:
        found = [answer.get("result") for _, answer in lanes.explore(jobs)]
    assert all(found)
    one, other = [
        (each.exhausted, {hazard: word for hazard, (word, _) in each.came_to.items()}) for each in found
    ]
    assert one == other
    assert one[0]
