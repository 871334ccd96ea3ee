"""A program as the operation of a worker: which clients it is handed, or makes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import psycopg
import psycopg_pool
import redis.asyncio
import sqlalchemy

from lost_update_lab.under_test.mariadb import connect_async
from tests.lost_update_lab.differential.clients import Blocking, OfAsyncio, driven
from tests.lost_update_lab.differential.commands import Program
from tests.lost_update_lab.differential.interpreter import Interpreter
from tests.lost_update_lab.differential.memory import Memory


def _url() -> str:
    return os.environ["DATABASE_URL"]


def _blocking(clients: Blocking, program: Program, own: int) -> Any:
    return driven(Interpreter(clients, Memory(own)).result(program))


def in_postgres(program: Program, own: int, sql: Any) -> Any:
    return _blocking(Blocking(sql), program, own)


def in_redis(program: Program, own: int, redis: Any) -> Any:
    return _blocking(Blocking(keys=redis), program, own)


def in_both(program: Program, own: int, sql: Any, redis: Any) -> Any:
    return _blocking(Blocking(sql, redis), program, own)


def in_mariadb(program: Program, own: int, sql: Any) -> Any:
    return _blocking(Blocking(sql, of_mariadb=True), program, own)


def by_threads(program: Program, own: int, sql: Any, redis: Any) -> Any:
    """Each thread connects to PostgreSQL by itself."""
    clients = Blocking(sql, redis)
    clients.connects = partial(psycopg.connect, _url(), autocommit=True)
    return _blocking(clients, program, own)


def subscribed(program: Program, own: int, redis: Any) -> Any:
    clients = Blocking(keys=redis)
    with redis.pubsub(ignore_subscribe_messages=True) as clients.messages:
        clients.messages.subscribe("go")
        clients.messages.get_message(timeout=1)  # that it has subscribed
        return _blocking(clients, program, own)


def with_a_pool(size: int, program: Program, own: int) -> Any:
    """Each thread takes its connection from a pool."""
    settings = {"autocommit": True}
    with psycopg_pool.ConnectionPool(_url(), min_size=1, max_size=size, kwargs=settings) as pool:
        clients = Blocking()
        clients.connects = partial(pool.connection, timeout=3)
        return _blocking(clients, program, own)


def with_sqlalchemy(size: int, program: Program, own: int) -> Any:
    """The same with SQLAlchemy's pool."""
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=partial(psycopg.connect, _url()),
        isolation_level="AUTOCOMMIT",
        pool_size=size,
        max_overflow=0,
        pool_timeout=3,
    )

    @contextmanager
    def connects() -> Iterator[Any]:
        with engine.connect() as connection:
            yield connection.connection.driver_connection

    clients = Blocking()
    clients.connects = connects
    try:
        return _blocking(clients, program, own)
    finally:
        engine.dispose()


# -- of asyncio ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _connection() -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(_url(), autocommit=True) as sql:
        yield sql


async def _result(clients: OfAsyncio, program: Program, own: int) -> str:
    return await Interpreter(clients, Memory(own)).result(program)


async def by_asyncio_in_postgres(program: Program, own: int) -> str:
    async with _connection() as sql:
        return await _result(OfAsyncio(sql), program, own)


async def by_tasks(program: Program, own: int) -> str:
    """Each task has a connection of its own to PostgreSQL."""
    async with _connection() as sql:
        clients = OfAsyncio(sql)
        clients.connects = _connection
        return await _result(clients, program, own)


async def by_asyncio_in_redis(program: Program, own: int) -> str:
    async with redis.asyncio.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        return await _result(OfAsyncio(keys=keys), program, own)


async def subscribed_by_asyncio(program: Program, own: int) -> str:
    async with redis.asyncio.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        clients = OfAsyncio(keys=keys)
        async with keys.pubsub(ignore_subscribe_messages=True) as clients.messages:
            await clients.messages.subscribe("go")
            await clients.messages.get_message(timeout=1)
            return await _result(clients, program, own)


async def by_asyncio_in_mariadb(program: Program, own: int) -> str:
    async with await connect_async(_url()) as sql:
        return await _result(OfAsyncio(sql, of_mariadb=True), program, own)
