"""What asyncio offers comes out as its synchronous twin does: redis.asyncio's Lock, and SQLAlchemy's async sessions."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
import redis
from redis.asyncio import Redis
from redis.exceptions import LockNotOwnedError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm.exc import StaleDataError

from lost_update_lab import Result, worker
from tests.lost_update_lab.scenarios.test_sqlalchemy import Show, Versioned, two_shows

Trial = Callable[..., Result]


def count(work: float) -> None:
    keys = redis.Redis.from_url(os.environ["REDIS_URL"])
    with suppress(LockNotOwnedError), keys, keys.lock("till", timeout=5, sleep=1):
        found = int(keys.get("count") or 0)
        time.sleep(work)
        keys.set("count", found + 1)


async def count_async(work: float) -> None:
    async with Redis.from_url(os.environ["REDIS_URL"]) as keys:
        with suppress(LockNotOwnedError):
            async with keys.lock("till", timeout=5, sleep=1):
                found = int(await keys.get("count") or 0)
                await asyncio.sleep(work)
                await keys.set("count", found + 1)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("work", "faults", "verdict"),
    [
        pytest.param(0, {"crashes": 1}, "kept", id="crash"),
        pytest.param(4, {}, "kept", id="shorter than the lease"),
        pytest.param(6, {}, "violated", id="longer than the lease"),
        pytest.param(0, {"pauses": 1}, "violated", id="pause"),
    ],
)
def test_the_lock_of_redis(trial: Trial, work: float, faults: dict[str, int], verdict: str) -> None:
    both = [trial([(each, work)] * 2, **faults) for each in (count, count_async)]
    assert [(each.verdict, each.exhausted) for each in both] == [(verdict, True)] * 2, "\n".join(
        map(str, both)
    )


async def sell(show: type[Show | Versioned], seats: int, locks: bool) -> str:
    """Also on MariaDB (mariadb/test_aiomysql.py)."""
    url = os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:")
    engine = create_async_engine(url.replace("mysql:", "mysql+aiomysql:"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            (await session.get_one(show, 1, with_for_update=locks)).sold += seats
    finally:
        await engine.dispose()
    return "sold"


sales = pytest.mark.parametrize(
    ("show", "locks", "verdict"),
    [(Show, False, "violated"), (Show, True, "kept"), (Versioned, False, "kept")],
    ids=["as it is", "with_for_update", "version_id_col"],
)


@pytest.mark.deep_after(1)
@sales
def test_sqlalchemy(show: type[Show | Versioned], locks: bool, verdict: str, trial: Trial) -> None:
    both = [worker("Ann", sell, show, 1, locks), worker("Bob", sell, show, 2, locks)]
    result = trial(both, setup=two_shows, refusals=[StaleDataError])
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
