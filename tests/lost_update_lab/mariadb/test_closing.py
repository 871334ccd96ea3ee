"""What a session lets go of when its connection is closed is a step: others may come just before it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pymysql
import pytest

from lost_update_lab import worker
from lost_update_lab.under_test.mariadb import connect_async
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

NAME = "SELECT GET_LOCK('drain', 0)"
ROW = "SELECT id FROM gate FOR UPDATE NOWAIT"
FREED = {NAME: "RELEASE_ALL_LOCKS() /* close() */", ROW: "ROLLBACK"}
BUSY, NEXT = "somebody else drains", "SELECT id FROM job WHERE NOT done LIMIT 1"
DO = "UPDATE job SET done = TRUE WHERE id = %s"


def one_job() -> None:
    shop.ask("DROP TABLE IF EXISTS job, gate")
    shop.ask("CREATE TABLE job (id INT PRIMARY KEY, done BOOL NOT NULL DEFAULT FALSE)")
    shop.ask("CREATE TABLE gate (id INT PRIMARY KEY)")
    shop.ask("INSERT INTO job (id) VALUES (1)")
    shop.ask("INSERT INTO gate VALUES (1)")


none_left = (lambda: not shop.ask(NEXT), "a job is left")


def drain(lock: str) -> str:
    """The lock is let go of by closing its connection."""
    lock_of, sql = shop.connect(autocommit=lock == NAME), shop.connect(autocommit=True)
    with lock_of, sql, lock_of.cursor() as asks, sql.cursor() as works:
        try:
            asks.execute(lock)
            if lock == NAME and not asks.fetchone()[0]:
                return BUSY
        except pymysql.OperationalError:
            return BUSY
        while works.execute(NEXT):
            works.execute(DO, works.fetchone())
    return "drained"


def produce(call: Callable[..., Any], *given: Any) -> Any:
    """A job is left to the one who drains, as he looks again when he has done one."""
    shop.ask("INSERT INTO job (id) VALUES (2)")
    return call(*given)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("lock", FREED)
def test_a_job_comes_just_before_the_close(trial: Trial, lock: str) -> None:
    workers = [worker("Ann", drain, lock), worker("Bob", produce, drain, lock)]
    result = trial(workers, setup=one_job, invariant=none_left, control=False)
    assert result.verdict == "violated", str(result)
    assert FREED[lock] in str(result)


def goes_in(lock: str) -> str:
    """A lock that is let go of by closing does not keep the next one out for ever."""
    lock_of, sql = shop.connect(autocommit="GET_LOCK" in lock), shop.connect(autocommit=True)
    with lock_of, sql, lock_of.cursor() as asks, sql.cursor() as works:
        asks.execute(lock)
        works.execute("SELECT balance FROM account WHERE id = 1")
        works.execute("UPDATE account SET balance = %s WHERE id = 1", [works.fetchone()[0] + 10])
    return "posted"


posted = (
    lambda ann, bob: (
        shop.ask("SELECT balance FROM account WHERE id = 1")[0][0] >= 100 + 10 * [ann, bob].count("posted")
    ),
    "a posting is lost",
)


@pytest.mark.deep
@pytest.mark.parametrize("hazards", [{}, {"crashes": 1}, {"lost_replies": 1}], ids=str)
@pytest.mark.parametrize("lock", ["SELECT GET_LOCK('a', 86400)", "SELECT code FROM voucher FOR UPDATE"])
def test_a_lock_that_is_closed_keeps_what_it_protects(
    trial: Trial, lock: str, hazards: dict[str, int]
) -> None:
    result = trial(
        [worker("Ann", goes_in, lock), worker("Bob", goes_in, lock)],
        invariant=posted,
        control=False,
        **hazards,
    )
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


# -- aiomysql ---------------------------------------------------------------------------------------------------------


async def _closed(sql: Any) -> None:
    sql.close()


async def _ensured(sql: Any) -> None:
    await sql.ensure_closed()


async def drain_asyncio(closed: Callable[[Any], Awaitable[None]]) -> str:
    sql = await connect_async(os.environ["DATABASE_URL"])
    await sql.autocommit(True)
    try:
        async with sql.cursor() as cursor:
            await cursor.execute(NAME)
            if not (await cursor.fetchone())[0]:
                return BUSY
            while await cursor.execute(NEXT):
                await cursor.execute(DO, await cursor.fetchone())
    finally:
        await closed(sql)
    return "drained"


async def produce_asyncio(closed: Callable[[Any], Awaitable[None]]) -> str:
    async with await connect_async(os.environ["DATABASE_URL"]) as sql, sql.cursor() as cursor:
        await cursor.execute("INSERT INTO job (id) VALUES (2)")
        await sql.commit()
    return await drain_asyncio(closed)


async def both_asyncio(closed: Callable[[Any], Awaitable[None]]) -> None:
    """Two tasks of one event loop."""
    await asyncio.gather(drain_asyncio(closed), produce_asyncio(closed))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("closed", [_closed, _ensured])
def test_a_job_comes_just_before_the_close_of_aiomysql(trial: Trial, closed: Any) -> None:
    workers = [worker("Ann", drain_asyncio, closed), worker("Bob", produce_asyncio, closed)]
    result = trial(workers, setup=one_job, invariant=none_left, control=False)
    assert result.verdict == "violated", str(result)
    assert FREED[NAME] in str(result)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("closed", [_closed, _ensured])
def test_another_task_of_the_loop_comes_just_before_the_close(trial: Trial, closed: Any) -> None:
    result = trial([worker("Ann", both_asyncio, closed)], setup=one_job, invariant=none_left, control=False)
    assert result.verdict == "violated", str(result)
