"""Coroutines as workers: psycopg's AsyncConnection, redis.asyncio and asyncio.sleep stand at gates as the others do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from redis.asyncio import Redis

from lost_update_lab import Result
from tests.lost_update_lab.scenarios.shop import READ, one_voucher

Trial = Callable[..., Result]
UPDATE = "UPDATE voucher SET uses = %s WHERE code = %s"


async def redeem(code: str, query: str) -> bool:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as db:
        row = await (await db.execute(query, [code])).fetchone()
        assert row
        await asyncio.sleep(60)
        if row[0] > 0:
            await db.execute(UPDATE, [row[0] - 1, code])
    return row[0] > 0


@pytest.mark.deep
@pytest.mark.parametrize(("query", "verdict"), [(READ, "violated"), (READ + " FOR UPDATE", "kept")])
def test_psycopg(trial: Trial, query: str, verdict: str) -> None:
    result = trial([(redeem, "XMAS", query)] * 2, setup=one_voucher, crashes=1)
    assert (result.verdict, result.exhausted) == (verdict, True)


async def count() -> None:
    async with Redis.from_url(os.environ["REDIS_URL"], decode_responses=True) as keys:
        await keys.set("count", int(await keys.get("count") or 0) + 1)


async def count_at_once() -> None:
    async with Redis.from_url(os.environ["REDIS_URL"]) as keys:
        await keys.incr("count")


@pytest.mark.deep
def test_redis(trial: Trial) -> None:
    result = trial([count, count], crashes=1)
    assert (result.verdict, result.exhausted) == ("violated", True)
    assert result.schedule
    assert "SET at tests/lost_update_lab/scenarios/test_coroutines.py" in result.schedule.overwrites[0]
    assert trial([count_at_once, count_at_once], crashes=1).kept


async def count_two(how: str) -> None:
    if how == "one after the other":
        await count_at_once()
        await count_at_once()
    else:
        await asyncio.wait_for(count_at_once(), 5)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["one after the other", "within a time"])
def test_one_coroutine_at_a_time(trial: Trial, how: str) -> None:
    result = trial([(count_two, how), (count_two, how)])
    assert (result.verdict, result.exhausted) == ("kept", True)


async def both() -> None:
    await asyncio.gather(count_at_once(), count_at_once())


async def within_a_time() -> None:
    """A command takes no time there, so the time-out would never come."""
    async with asyncio.timeout(2):
        await count_at_once()


def another_loop(call: Callable[[], Any]) -> None:
    """Not as asyncio makes it: such a loop has no gates."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(call())


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("call", [both, within_a_time])
def test_the_coroutines_of_a_loop_without_gates(trial: Trial, call: Any) -> None:
    """They are tried in one order only, so nothing is called kept."""
    result = trial([(another_loop, call), (another_loop, call)])
    assert (result.verdict, result.exhausted) == ("inconclusive", True)
    assert "several coroutines of A and B are at work at a time" in result.cause
    assert result.remedy.startswith("let asyncio make the loop: asyncio.run()")


app = FastAPI()


@app.post("/redeem/{code}")
async def endpoint(code: str) -> bool:
    return await redeem(code, READ)


@app.post("/take/{code}")
async def take(code: str) -> bool:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        row = await (await db.execute(READ, [code])).fetchone()
        assert row
        await db.execute(UPDATE, [row[0] - 1, code])
    return row[0] > 0


async def post() -> bool:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
        return (await client.post("/redeem/XMAS")).json()


@pytest.mark.deep
def test_an_endpoint_of_fastapi(trial: Trial) -> None:
    result = trial([post, post], setup=one_voucher)
    assert (result.verdict, result.exhausted) == ("violated", True)


@app.post("/take_locked/{code}")
async def take_locked(code: str) -> bool:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as db:
        row = await (await db.execute(READ + " FOR UPDATE", [code])).fetchone()
        assert row
        await db.execute(UPDATE, [row[0] - 1, code])
    return row[0] > 0


@app.post("/take_in_a_thread/{code}")
def take_in_a_thread(code: str) -> bool:
    """FastAPI calls it in a thread of a pool."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        row = db.execute(READ, [code]).fetchone()
        assert row
        db.execute(UPDATE, [row[0] - 1, code])
    return row[0] > 0


def by_a_client(path: str) -> bool:
    return TestClient(app).post(f"/{path}/XMAS").json()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("take", "violated"),
        ("take_locked", "kept"),
        ("take_in_a_thread", "violated"),
    ],
)
def test_a_client_with_an_event_loop_in_another_thread(trial: Trial, path: str, verdict: str) -> None:
    """FastAPI's own. Its thread waits without a time-out for the loop's, several times in a row: that is no poll."""
    result = trial([(by_a_client, path), (by_a_client, path)], setup=one_voucher)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    assert "(task" not in str(result)  # one task sends all commands: no number is needed
