"""A lease by a clock that an object holds ends in virtual time, as one by time.time() does."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis import Redis

from lost_update_lab import Result, worker

Trial = Callable[..., Result]
TAKE = """
local held = redis.call('GET', 'until')
if held and tonumber(held) >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', 'until', ARGV[2])
return 1
"""


class Lease:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock


@dataclass
class Try:
    at: float = field(default_factory=time.time)


@dataclass
class Holder:
    ident: int = field(default_factory=threading.get_ident)


def keys() -> Any:
    return Redis.from_url(os.environ["REDIS_URL"])


def opened() -> None:
    keys().set("n", 0)


def add(now: Callable[[], float], amount: int) -> None:
    redis = keys()
    while not redis.eval(TAKE, 0, int(now()), int(now()) + 10):
        time.sleep(1)
    value = int(redis.get("n"))
    redis.set("n", value + amount)
    redis.delete("until")


def by_an_instance(lease: Lease, amount: int) -> None:
    add(lease.clock, amount)


def by_a_dataclass(amount: int) -> None:
    add(lambda: Try().at, amount)


def by_the_module(amount: int) -> None:
    add(lambda: time.time(), amount)


def by_an_argument(clock: Callable[[], float], amount: int) -> None:
    add(clock, amount)


def sums_up() -> bool:
    return int(keys().get("n")) == 30


HOLDERS = ["module", "instance", "dataclass", "argument"]


def by(holder: str) -> tuple[Any, ...]:
    """Made in the test: each look for holders would find one of a module (gates/held.py)."""
    if holder == "argument":
        return by_an_argument, time.time
    if holder == "instance":
        return by_an_instance, Lease()
    return (by_the_module,) if holder == "module" else (by_a_dataclass,)


@pytest.mark.deep
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_pause_outlasts_the_lease(trial: Trial, holder: str) -> None:
    workers = [worker("Ann", *by(holder), 10), worker("Bob", *by(holder), 20)]
    found = trial(workers, setup=opened, invariant=(sums_up, "an update is lost"), pauses=1, control=False)
    assert found.verdict == "violated", str(found)


def reenters(amount: int) -> None:
    """Whoever has the number of the holder goes on. Main threads of two processes have the same."""
    redis, me = keys(), str(Holder().ident).encode()
    while not redis.set("lock", me, nx=True) and redis.get("lock") != me:
        time.sleep(1)
    value = int(redis.get("n"))
    redis.set("n", value + amount)
    redis.delete("lock")


def test_the_number_of_a_thread_by_a_dataclass(trial: Trial) -> None:
    workers = [worker("Ann", reenters, 10), worker("Bob", reenters, 20)]
    found = trial(workers, setup=opened, invariant=(sums_up, "an update is lost"), control=False)
    assert found.verdict == "violated", str(found)
