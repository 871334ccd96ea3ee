"""The tasks of one event loop: every order in which their commands are executed, and their replies heard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from lost_update_lab import Result, worker
from lost_update_lab.gates.event_loop import GatedLoop
from tests.lost_update_lab.scenarios.shop import READ, one_voucher
from tests.lost_update_lab.scenarios.test_sqlalchemy import Show, two_shows

Trial = Callable[..., Result]


# -- the textbook example ---------------------------------------------------------------------------------------------


FOR_UPDATE = READ + " FOR UPDATE"


async def take(query: str) -> None:
    """In one transaction if it locks."""
    url, locks = os.environ["DATABASE_URL"], query == FOR_UPDATE
    async with await psycopg.AsyncConnection.connect(url, autocommit=not locks) as db:
        row = await (await db.execute(query, ["XMAS"])).fetchone()
        assert row
        await db.execute("UPDATE voucher SET uses = %s WHERE code = %s", [row[0] - 1, "XMAS"])


async def take_two(query: str) -> None:
    await asyncio.gather(take(query), take(query))


def uses(left: int) -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        return sql.execute(READ, ["XMAS"]).fetchone() == (left,)


@pytest.mark.deep
@pytest.mark.parametrize(("query", "verdict"), [(FOR_UPDATE, "kept"), (READ, "violated")])
def test_two_withdrawals_at_a_time(trial: Trial, query: str, verdict: str) -> None:
    lost = partial(uses, -1), "a withdrawal is lost"
    result = trial([worker("Ann", take_two, query)], setup=one_voucher, invariant=lost)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    if result.schedule:
        assert result.schedule.confirmed == 10
        told = result.schedule.overwrites[0]
        assert "'s UPDATE at tests/lost_update_lab/scenarios/test_tasks.py:" in told
        assert told.startswith("Ann (task ")
        assert "overwrote what Ann (task " in told


async def sell(engine: Any, seats: int, locks: bool) -> None:
    async with AsyncSession(engine) as session, session.begin():
        (await session.get_one(Show, 1, with_for_update=locks)).sold += seats


async def sell_two(locks: bool) -> None:
    engine = create_async_engine(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))
    try:
        await asyncio.gather(sell(engine, 1, locks), sell(engine, 2, locks))
    finally:
        await engine.dispose()


@pytest.mark.deep
@pytest.mark.parametrize(("locks", "verdict"), [(True, "kept"), (False, "violated")])
def test_sessions_of_sqlalchemy(trial: Trial, locks: bool, verdict: str) -> None:
    """Without an invariant, the outcome has to be that of some order of the tasks."""
    result = trial([(sell_two, locks)], setup=two_shows, budget=120)
    assert result.verdict == verdict, str(result)
    assert result.exhausted or not result.kept


# -- in the process's memory ------------------------------------------------------------------------------------------


async def count(keys: Any) -> None:
    await keys.set("count", int(await keys.get("count") or 0) + 1)


async def count_twice(how: str) -> int:
    lock = asyncio.Lock()
    async with Redis.from_url(os.environ["REDIS_URL"], decode_responses=True) as keys:

        async def once() -> None:
            if how == "a lock of asyncio":
                async with lock:
                    await count(keys)
            elif how == "a sleep":
                found = int(await keys.get("count") or 0)
                await asyncio.sleep(1)
                await keys.set("count", found + 1)
            else:
                await count(keys)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(once())
            tasks.create_task(once())
        return int(await keys.get("count"))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ("as it is", "violated"),
        ("a lock of asyncio", "kept"),
        pytest.param("a sleep", "violated", marks=pytest.mark.deep),
    ],
)
def test_what_two_tasks_share(trial: Trial, how: str, verdict: str) -> None:
    result = trial([(count_twice, how)], invariant=(lambda found: found == 2, "an increment is lost"))
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


@pytest.mark.deep
def test_tasks_that_wait_have_no_serial_order(trial: Trial) -> None:
    """One task sleeps while the next begins, so nothing shows what would be right."""
    result = trial([(count_twice, "a sleep")])
    assert (result.verdict, result.exhausted) == ("inconclusive", True)
    assert "the coroutines of A cannot be run one after the other" in result.cause
    assert result.remedy == "an invariant that says what must hold"


async def read_and_write_through_a_cache() -> bool:
    """The write comes after the read on the server, and its reply before the read's: the cache keeps the old value."""
    cache: dict[str, str | None] = {}
    async with Redis.from_url(os.environ["REDIS_URL"], decode_responses=True) as keys:

        async def read() -> None:
            cache["name"] = await keys.get("name")

        async def write() -> None:
            await keys.set("name", "new")
            cache["name"] = "new"

        await asyncio.gather(read(), write())
        return cache["name"] == await keys.get("name")


FRESH = lambda fresh: fresh, "the cache is stale"


@pytest.mark.deep
def test_a_reply_that_is_overtaken(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    result = trial([read_and_write_through_a_cache], invariant=FRESH)
    assert (result.verdict, result.exhausted) == ("violated", True)
    assert result.schedule
    assert result.schedule.confirmed == 10
    monkeypatch.setattr(
        GatedLoop, "_waits_to_hear", lambda loop: False
    )  # as if each reply were heard at once
    assert trial([read_and_write_through_a_cache], invariant=FRESH).verdict == "kept"


# -- what is not decided ----------------------------------------------------------------------------------------------


async def blocks() -> None:
    async with Redis.from_url(os.environ["REDIS_URL"]) as keys:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:

            async def blocking() -> None:
                sql.execute("SELECT 1")

            await asyncio.gather(keys.incr("count"), blocking())


def test_what_cannot_be_decided_says_what_would_decide_it(trial: Trial) -> None:
    with pytest.raises(Exception, match="explored") as raised:
        trial([blocks, blocks], invariant=(lambda: True, "never"))
    assert "A blocks its event loop, for which other coroutines wait" in str(raised.value)
    assert "await a client of asyncio" in str(raised.value)


async def gives_up() -> str:
    async with Redis.from_url(os.environ["REDIS_URL"]) as keys:
        try:
            async with asyncio.timeout(5):
                await asyncio.sleep(10)
        except TimeoutError:
            await keys.incr("late")
            return "late"
        return "in time"


def test_a_time_out_comes_by_virtual_time(trial: Trial) -> None:
    late = lambda one, other: (one, other) == ("late", "late"), "no time-out"
    result = trial([gives_up, gives_up], invariant=late)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


async def adds_beside_a_sleeper() -> None:
    async with Redis.from_url(os.environ["REDIS_URL"], retry=Retry(NoBackoff(), 0)) as keys:
        while not await keys.set("lock", 1, nx=True):
            await asyncio.sleep(1)
        sleeper = asyncio.create_task(asyncio.sleep(3))
        await keys.incr("count")
        sleeper.cancel()
        await keys.delete("lock")


@pytest.mark.deep
def test_a_reply_is_heard_where_only_a_pause_could_come_besides(trial: Trial) -> None:
    """The holder had a timer, so that it could be paused. If it was not, it never heard its reply: `stalled`."""
    result = trial([adds_beside_a_sleeper] * 2, pauses=1, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)
