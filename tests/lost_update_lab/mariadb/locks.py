"""Locks as users of PyMySQL have them, for `lost-update-lab trust`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from redis.exceptions import LockError

from tests.lost_update_lab.command.trials import get_then_set


@contextmanager
def named(name: str, *, sql: Any) -> Iterator[None]:
    """It asks again when its time is over."""
    with sql.cursor() as cursor:
        got = False
        while not got:
            cursor.execute("SELECT GET_LOCK(%s, 60)", [name])
            got = cursor.fetchone()[0]
        yield
        cursor.execute("SELECT RELEASE_LOCK(%s)", [name])


@contextmanager
def named_for_ever(name: str, *, sql: Any) -> Iterator[None]:
    """So it is on MySQL. MariaDB answers NULL at once."""
    with sql.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, -1)", [name])
        yield
        cursor.execute("SELECT RELEASE_LOCK(%s)", [name])


@asynccontextmanager
async def leased_asyncio(name: str, *, redis: Any) -> AsyncIterator[None]:
    lock = redis.lock(name, timeout=5, sleep=1)
    await lock.acquire()
    yield
    with suppress(LockError):  # it came to its end meanwhile
        await lock.release()


@asynccontextmanager
async def named_asyncio(name: str, *, sql: Any) -> AsyncIterator[None]:
    async with sql.cursor() as cursor:
        got = False
        while not got:
            await cursor.execute("SELECT GET_LOCK(%s, 60)", [name])
            got = (await cursor.fetchone())[0]
        yield
        await cursor.execute("SELECT RELEASE_LOCK(%s)", [name])


__all__ = ["get_then_set", "leased_asyncio", "named", "named_asyncio", "named_for_ever"]
