"""Pools of threads within a worker: concurrent.futures, asyncio.to_thread and run_in_executor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import redis

from lost_update_lab import Result
from tests.lost_update_lab.scenarios.shop import one_voucher

Trial = Callable[..., Result]
OF_THE_PROCESS = ThreadPoolExecutor(1)


def count(at_once: bool) -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        if at_once:
            keys.incr("count")
        else:
            keys.set("count", int(keys.get("count") or 0) + 1)


def by_a_pool(at_once: bool) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(count, at_once).result()


def by_a_pool_of_the_process(at_once: bool) -> None:
    OF_THE_PROCESS.submit(count, at_once).result()


async def to_a_thread(at_once: bool) -> None:
    await asyncio.to_thread(count, at_once)


async def in_an_executor(at_once: bool) -> None:
    await asyncio.get_running_loop().run_in_executor(None, count, at_once)


@pytest.mark.deep
@pytest.mark.parametrize(("at_once", "verdict"), [(False, "violated"), (True, "kept")])
@pytest.mark.parametrize(
    "call",
    [
        to_a_thread,
        pytest.param(in_an_executor, marks=pytest.mark.deep),
        pytest.param(by_a_pool, marks=pytest.mark.deep),
        by_a_pool_of_the_process,
    ],
)
def test_two_workers(trial: Trial, call: Any, at_once: bool, verdict: str) -> None:
    result = trial([(call, at_once), (call, at_once)])
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


def by_two_threads_of_a_pool() -> None:
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(count, True), pool.submit(count, True)]:
            each.result()


def test_two_tasks_of_a_pool(trial: Trial) -> None:
    """The pool asks, without waiting, whether its first thread is idle: what that has done in memory decides. It was
    "not repeatable"."""
    found = trial([by_two_threads_of_a_pool, by_two_threads_of_a_pool], control=False)
    assert found.kept, str(found)


async def two_threads(at_once: bool) -> None:
    await asyncio.gather(asyncio.to_thread(count, at_once), asyncio.to_thread(count, at_once))


def counted() -> bool:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        return keys.get("count") == b"2"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("at_once", "verdict"), [(False, "violated"), (True, "kept")])
def test_two_threads_of_one_worker(trial: Trial, at_once: bool, verdict: str) -> None:
    result = trial([(two_threads, at_once)], invariant=(counted, "an increment is lost"))
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


def by_its_thread() -> int:
    """The connection of who waits for the thread."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql, ThreadPoolExecutor(1) as threads:

        def redeems() -> int:
            (uses,) = sql.execute("SELECT uses FROM voucher FOR UPDATE").fetchone() or (0,)
            sql.execute("UPDATE voucher SET uses = %s", [max(uses - 1, 0)])
            return int(uses)

        return threads.submit(redeems).result()


def test_a_connection_that_is_handed_to_a_thread(trial: Trial) -> None:
    """At the end of a schedule its caller waited for the connection's lock, which the thread held: that took 20 s, and
    ended with a traceback of the explorer's own."""
    result = trial([(by_its_thread,)] * 2, setup=one_voucher, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)
