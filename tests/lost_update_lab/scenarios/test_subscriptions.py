"""A look at a subscription that does not wait: what comes just before it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis.asyncio as aioredis

from lost_update_lab import Result, worker
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]


@contextmanager
def listening(redis: Any) -> Iterator[Any]:
    with redis.pubsub(ignore_subscribe_messages=True) as messages:
        messages.subscribe("go")
        messages.get_message(timeout=1)
        yield messages


def reads_then_looks(redis: Any) -> tuple[bool, bool]:
    with listening(redis) as messages:
        done = redis.get("done") is not None
        return done, messages.get_message() is not None


def is_done(redis: Any) -> None:
    redis.set("done", 1)
    redis.publish("go", 1)


def test_a_message_may_come_just_before_a_look(trial: Trial) -> None:
    workers = [worker("Ann", reads_then_looks), worker("Bob", is_done)]
    result = trial(workers, invariant=lambda ann, bob: ann != (False, True), control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


async def waits_for(seconds: float | None, ready: bool) -> object:
    """`seconds`: as redis.asyncio takes them. None: for ever."""
    async with aioredis.from_url(os.environ["REDIS_URL"]) as redis, redis.pubsub() as messages:
        await messages.subscribe("go")
        await messages.get_message(timeout=1)  # the confirmation
        if ready:
            await redis.set("ready", 1)
        found = await messages.get_message(timeout=seconds)
        return found and found["data"]


def goes_if_ready(redis: Any) -> bool:
    if ready := redis.get("ready") is not None:
        redis.publish("go", 1)
    return ready


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("seconds", [0.0, 1.0, None])
def test_a_message_of_asyncio_is_waited_for(trial: Trial, seconds: float | None) -> None:
    """Where none came, get_message() raised a TimeoutError, in place of saying so; and for ever was no number."""
    workers = [worker("Ann", waits_for, seconds, True), worker("Bob", goes_if_ready)]
    told = trial(workers, invariant=lambda ann, bob: not ann or bob, control=False)
    assert told.verdict == ("stalled" if seconds is None else "kept"), str(told)
    comes = trial(workers, invariant=lambda ann, bob: ann != b"1", control=False)
    assert comes.verdict == "violated", str(comes)
