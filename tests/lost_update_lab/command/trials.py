"""A scenario and locks as a user has them in a module of their own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from concurrent import futures
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from redis.asyncio import Redis

from lost_update_lab.scenarios.race import Race
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem, redeem_locked, redemptions


def voucher(race: Race) -> None:
    race.setup(one_voucher)
    race.worker("Ann", redeem, "XMAS", customer=1)
    race.worker("Bob", redeem, "XMAS", customer=2)


def _customer(number: int) -> int:
    return number


def voucher_by_modules(race: Race) -> None:
    """It uses modules, and a name that no star brings along."""
    race.setup(one_voucher)
    for number in range(2):
        race.worker(str(number), redeem, "XMAS", customer=_customer(number))
    futures.wait([])
    time.monotonic()


def voucher_locked(race: Race) -> None:
    race.setup(one_voucher)
    race.worker("Ann", redeem_locked, "XMAS", customer=1)
    race.worker("Bob", redeem_locked, "XMAS", customer=2)
    race.explore(crashes=1)


def redeem_in_two_commits(sql: Any) -> None:
    sql.execute("UPDATE voucher SET uses = uses - 1")
    sql.execute("INSERT INTO redemption (code, customer) VALUES ('XMAS', 1)")


def uses() -> int:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return connection.execute("SELECT sum(uses) FROM voucher").fetchone()[0]  # type: ignore[index]


def voucher_in_two_commits(race: Race) -> None:
    """Only a crash breaks it."""
    race.setup(one_voucher)
    race.worker("Ann", redeem_in_two_commits)
    race.worker("Bob", redeem_in_two_commits)
    race.invariant(lambda: uses() + redemptions() == 1, "a use is gone, and nobody has redeemed it")


@contextmanager
def get_then_set(name: str, *, redis: Any) -> Iterator[None]:
    while redis.get(name):
        time.sleep(1)
    redis.set(name, 1)
    yield
    redis.delete(name)


@contextmanager
def advisory(name: str, *, sql: Any) -> Iterator[None]:
    sql.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
    yield
    sql.execute("SELECT pg_advisory_unlock(hashtext(%s))", [name])


def leased(name: str, *, redis: Any) -> Any:
    return redis.lock(name, timeout=5, sleep=1)


class KeptOut(Exception):
    """An error of a library's own."""


@contextmanager
def refuses_at_once(name: str, *, redis: Any) -> Iterator[None]:
    if not redis.set(name, 1, nx=True, ex=3600):
        raise KeptOut(name)
    yield
    redis.delete(name)


@contextmanager
def never_given_back(name: str, *, redis: Any) -> Iterator[None]:
    if not redis.set(name, 1, nx=True, ex=3600):
        raise KeptOut(name)
    yield


@contextmanager
def refuses_and_rolls_back(name: str, *, sql: Any) -> Iterator[None]:
    with sql.transaction():
        if not sql.execute("SELECT pg_try_advisory_xact_lock(7)").fetchone()[0]:
            raise KeptOut(name)
        yield


@contextmanager
def makes_its_table(name: str, *, sql: Any) -> Iterator[None]:
    sql.execute("CREATE TABLE IF NOT EXISTS my_lock (name text PRIMARY KEY)")
    while not sql.execute("INSERT INTO my_lock VALUES (%s) ON CONFLICT DO NOTHING", [name]).rowcount:
        time.sleep(1)
    yield
    sql.execute("DELETE FROM my_lock WHERE name = %s", [name])


@contextmanager
def a_row(name: str, *, sql: Any) -> Iterator[None]:
    while not sql.execute("INSERT INTO held VALUES (%s) ON CONFLICT DO NOTHING", [name]).rowcount:
        time.sleep(1)
    yield
    sql.execute("DELETE FROM held WHERE name = %s", [name])


class ARow:
    """The same row. Its table is made in the setup."""

    def __init__(self, name: str, sql: Any) -> None:
        self.held = a_row(name, sql=sql)

    def __enter__(self) -> None:
        return self.held.__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self.held.__exit__(*error)

    @staticmethod
    def setup(sql: Any) -> None:
        sql.execute("CREATE TABLE held (name text PRIMARY KEY)")


@contextmanager
def lets_the_third_in(name: str, *, redis: Any) -> Iterator[None]:
    while redis.incr(name) == 2:  # it counts itself, and forgets that it does so each time
        time.sleep(1)
    yield
    redis.delete(name)


@contextmanager
def keeps_its_session_lock(name: str, *, sql: Any) -> Iterator[None]:
    with sql.transaction():
        if not sql.execute("SELECT pg_try_advisory_lock(7)").fetchone()[0]:
            raise KeptOut(name)
    yield


def no_lock(redis: Any) -> None: ...


class GetThenSetAsyncio:
    """No context manager: two coroutines."""

    def __init__(self, name: str, redis: Any) -> None:
        self.name, self.redis = name, redis

    async def acquire(self) -> None:
        while await self.redis.get(self.name):
            await asyncio.sleep(1)
        await self.redis.set(self.name, 1)

    async def release(self) -> None:
        await self.redis.delete(self.name)


@asynccontextmanager
async def get_then_set_asyncio(name: str, *, redis: Any) -> AsyncIterator[None]:
    lock = GetThenSetAsyncio(name, redis)
    await lock.acquire()
    yield
    await lock.release()


@asynccontextmanager
async def advisory_asyncio(name: str, *, sql: Any) -> AsyncIterator[None]:
    await sql.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
    yield
    await sql.execute("SELECT pg_advisory_unlock(hashtext(%s))", [name])


class TriesOnce(GetThenSetAsyncio):
    """It asks for `redis`, which is one of asyncio, and answers False where it has not got the lock."""

    async def acquire(self) -> bool:  # type: ignore[override]
        return bool(await self.redis.set(self.name, 1, nx=True))


_EVENTS: list[asyncio.Event] = []


@asynccontextmanager
async def woken_by_its_holder(name: str, *, redis: Any) -> AsyncIterator[None]:
    """Right for tasks of one process."""
    mine = await redis.set(name, 1, nx=True)
    if mine:
        _EVENTS.append(asyncio.Event())
    elif _EVENTS:
        await _EVENTS[0].wait()
    yield
    if mine:
        await redis.delete(name)
        _EVENTS.pop().set()


def leased_asyncio(name: str) -> Any:
    """A plain function with a client of its own."""
    return Redis.from_url(os.environ["REDIS_URL"]).lock(name, timeout=5, sleep=1)


def two_coroutines(name: str) -> Any:
    return GetThenSetAsyncio(name, Redis.from_url(os.environ["REDIS_URL"]))


def no_lock_either(name: str) -> int:
    return 42


async def a_coroutine(name: str) -> Any:
    return asyncio.Lock()


def seats() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("CREATE TABLE seat (number int CHECK (number > 0), guest text UNIQUE)")


def sit(number: int, guest: str, sql: Any) -> None:
    sql.execute("INSERT INTO seat VALUES (%s, %s)", [number, guest])


def seated(race: Race) -> None:
    """Each guest is another one: no order needs a constraint."""
    race.setup(seats)
    race.worker("Ann", sit, 1, "Ann")
    race.worker("Bob", sit, 2, "Bob")


def redeem_again_and_again(code: str, customer: int, sql: Any) -> None:
    for _ in range(6):
        redeem(code, customer, sql)


def endless(race: Race) -> None:
    """Nobody can wait for the end of its search."""
    race.setup(one_voucher)
    for customer in range(4):
        race.worker(str(customer), redeem_again_and_again, "XMAS", customer=customer)
    race.invariant(lambda: print("asked", flush=True) or redemptions() < 99, "it is never so")
    race.explore(faults=3)


def no_scenario() -> None: ...


def cannot_be_written(race: Race) -> None:
    raise ValueError("so it is")
