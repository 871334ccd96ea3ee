"""A pool asks, without waiting, whether one of its threads is idle: what another thread has done in memory decides."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis

from lost_update_lab import Result, worker

Trial = Callable[..., Result]


def keys() -> Any:
    return Redis.from_url(os.environ["REDIS_URL"])


def opened() -> None:
    keys().set("n", 0)


def at_once(amount: int) -> None:
    keys().incrby("n", amount)


def get_then_set(amount: int) -> None:
    value = int(keys().get("n"))
    keys().set("n", value + amount)


def twice(add: Callable[[int], None], amount: int) -> None:
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(add, amount), pool.submit(add, amount)]:
            each.result()


@pytest.mark.parametrize(("add", "verdict"), [(at_once, "kept"), (get_then_set, "violated")])
def test_two_tasks_of_a_pool(trial: Trial, add: Callable[[int], None], verdict: str) -> None:
    """It was "not repeatable"."""
    workers = [worker("Ann", twice, add, 10), worker("Bob", twice, add, 20)]
    found = trial(workers, setup=opened, invariant=(lambda: int(keys().get("n")) == 60, "an update is lost"))
    assert found.verdict == verdict, str(found)
