"""Coroutines as workers: psycopg's AsyncConnection, redis.asyncio and asyncio.sleep stand at gates as the others do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from redis.asyncio import Redis

from lost_update_lab import Mistake, Result
from lost_update_lab.runs import hang
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
    elif how == "within a time":
        await asyncio.wait_for(count_at_once(), 5)
    else:
        await asyncio.gather(count_at_once(), count_at_once())


@pytest.mark.parametrize(
    ("how", "verdict"),
    [("one after the other", "kept"), ("within a time", "kept"), ("at a time", "inconclusive")],
)
def test_several_coroutines_of_one_worker(trial: Trial, how: str, verdict: str) -> None:
    """They are tried in one order only, so nothing is called kept."""
    result = trial([(count_two, how), (count_two, how)])
    assert (result.verdict, result.exhausted) == (verdict, True)
    if verdict == "inconclusive":
        assert "several coroutines of A and B are at work at a time" in result.cause
        assert result.remedy == "give each of these coroutines to a worker of its own"


async def take_one() -> None:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        row = await (await db.execute(READ, ["XMAS"])).fetchone()
        assert row
        await asyncio.sleep(60)
        await db.execute(UPDATE, [row[0] - 1, "XMAS"])


async def take_two() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(take_one())
        tasks.create_task(take_one())


def test_no_coroutine_passes_a_gate_while_another_one_connects(trial: Trial) -> None:
    """A handshake is no step, and it waits for its server. Meanwhile the loop stands still."""
    result = trial([take_two, take_two], setup=one_voucher)
    assert (result.verdict, result.exhausted) == ("violated", True)
    assert result.schedule
    assert result.schedule.confirmed == 10


app = FastAPI()


@app.post("/redeem/{code}")
async def endpoint(code: str) -> bool:
    return await redeem(code, READ)


async def post() -> bool:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
        return (await client.post("/redeem/XMAS")).json()


def test_an_endpoint_of_fastapi(trial: Trial) -> None:
    result = trial([post, post], setup=one_voucher)
    assert (result.verdict, result.exhausted) == ("violated", True)


def test_a_client_with_an_event_loop_in_another_thread(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang, "STANDS_WITHIN", 0.5)
    told = "A.1 waits in something that the explorer does not see"
    with pytest.raises(Mistake, match=told):
        trial([lambda: TestClient(app).post("/redeem/XMAS")] * 2, setup=one_voucher)
