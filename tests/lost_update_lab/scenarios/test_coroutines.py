"""Coroutines as workers: psycopg's AsyncConnection, redis.asyncio and asyncio.sleep stand at gates as the others do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from io import StringIO

import httpx
import procrastinate
import psycopg
import pytest
from django.core.management import BaseCommand, call_command
from fastapi import FastAPI
from fastapi.testclient import TestClient
from procrastinate.testing import InMemoryConnector
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


queue = procrastinate.App(connector=InMemoryConnector())


@queue.task
def redeemed_later(code: str) -> bool:
    return asyncio.run(redeem(code, READ))


def test_the_body_of_a_task(trial: Trial) -> None:
    assert trial([(redeemed_later, "XMAS")] * 2, setup=one_voucher).verdict == "violated"


class Redeem(BaseCommand):
    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> str:
        return str(asyncio.run(redeem("XMAS", READ)))


def test_a_management_command(trial: Trial) -> None:
    assert (
        trial([lambda: call_command(Redeem(stdout=StringIO()))] * 2, setup=one_voucher).verdict == "violated"
    )
