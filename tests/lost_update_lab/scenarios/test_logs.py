"""What libraries log about injected faults is not shown; what the operations themselves do wrong is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
import redis.asyncio

from lost_update_lab import Result

Trial = Callable[..., Result]
FORGOTTEN = "Task exception was never retrieved"


async def count(wrong: bool) -> None:
    async with redis.asyncio.Redis.from_url(os.environ["REDIS_URL"]) as client:
        await client.incr("count")
    if wrong:
        raise ValueError("of its own")


async def forgets_its_task(wrong: bool) -> None:
    task = asyncio.create_task(count(wrong))
    while not task.done():
        await asyncio.sleep(1)


@pytest.mark.deep(short=False)
@pytest.mark.parametrize(("wrong", "faults"), [(False, {"lost_replies": 1}), (True, {})])
def test_a_task_that_nobody_awaits(
    trial: Trial, caplog: pytest.LogCaptureFixture, wrong: bool, faults: dict[str, int]
) -> None:
    trial([(forgets_its_task, wrong)] * 2, invariant=lambda: True, control=False, **faults)
    assert (FORGOTTEN in caplog.text) == wrong


def counts_in_a_callback(wrong: bool, redis: Any) -> None:
    def called(_: Future[None]) -> None:
        redis.incr("count")
        if wrong:
            raise ValueError("of its own")

    future: Future[None] = Future()
    future.add_done_callback(called)
    future.set_result(None)


@pytest.mark.parametrize(("wrong", "faults"), [(False, {"lost_replies": 1}), (True, {})])
def test_a_library_that_logs_what_it_has_caught(
    trial: Trial, caplog: pytest.LogCaptureFixture, wrong: bool, faults: dict[str, int]
) -> None:
    trial([(counts_in_a_callback, wrong)] * 2, invariant=lambda: True, control=False, **faults)
    assert ("exception calling callback" in caplog.text) == wrong
