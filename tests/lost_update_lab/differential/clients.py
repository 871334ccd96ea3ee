"""The clients of a program: the same commands for blocking clients, and for those of asyncio.

A method of blocking clients never waits in an event loop, so a program can be run without one (operations.py).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from copy import copy
from typing import Any, Self

import psycopg
import pymysql
import redis

ERRORS = (psycopg.Error, redis.RedisError, TimeoutError, pymysql.MySQLError)
#: number of rows, first row
Reply = tuple[int, Any]
#: what one thread, or task, of a worker does with its clients
Turn = Callable[[Any], Coroutine[Any, Any, Any]]


def name_of(error: BaseException) -> str:
    number = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else ""
    return f"{type(error).__name__}{number}"


def driven(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine of blocking clients returns."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits in an event loop")


class Blocking:
    """psycopg, PyMySQL and redis-py. Threads of a worker share them, with a lock, an event and a condition. `connects`:
    each thread takes a connection of its own from there."""

    connects: Callable[[], AbstractContextManager[Any]] | None = None
    messages: Any = None  # a subscription

    def __init__(self, sql: Any = None, keys: Any = None, of_mariadb: bool = False) -> None:
        self.sql, self.keys, self.of_mariadb = sql, keys, of_mariadb
        self.lock, self.event, self.condition = threading.Lock(), threading.Event(), threading.Condition()

    async def query(self, text: str) -> Reply:
        if self.of_mariadb:
            with self.sql.cursor() as cursor:
                count = cursor.execute(text)
                return count, cursor.fetchone() if cursor.description else None
        found = self.sql.execute(text)
        return found.rowcount, found.fetchone() if found.description else None

    async def ask(self, *command: Any) -> Any:
        return self.keys.execute_command(*command)

    async def multi(self, commands: Sequence[Sequence[Any]]) -> Any:
        several = self.keys.pipeline(transaction=True)
        for each in commands:
            several.execute_command(*each)
        return several.execute()

    async def watch(self, name: str, change: Callable[[Any], Any], **lease: int) -> Any:
        with self.keys.pipeline() as watching:
            watching.watch(name)
            value = change(watching.get(name))
            watching.multi()
            watching.set(name, value, **lease)
            return watching.execute()

    async def hear(self, seconds: float) -> Any:
        """A message that has come over the subscription, or comes by then."""
        found = self.messages.get_message(timeout=seconds)
        return found and found["data"]

    async def subscribe(self, channel: str) -> None:
        self.messages.subscribe(channel)

    async def unsubscribe(self, channel: str) -> None:
        self.messages.unsubscribe(channel)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        with self.lock:
            yield

    async def wait(self, seconds: float) -> bool:
        return self.event.wait(seconds)

    async def wait_for_notice(self, seconds: float) -> bool:
        with self.condition:
            return self.condition.wait(seconds)

    async def notice(self) -> None:
        with self.condition:
            self.condition.notify_all()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Self]:
        """The clients of a thread."""
        if self.connects is None:
            yield self
            return
        with self.connects() as sql:
            own = copy(self)
            own.sql = sql
            yield own

    async def together(self, turns: Sequence[Turn], grouped: bool = False) -> list[str]:
        """Each in a thread of its own. Returns the names of their errors."""
        failed: list[str] = []

        def run(turn: Turn) -> None:
            try:
                driven(_turn(self, turn))
            except ERRORS as error:
                failed.append(name_of(error))

        threads = [threading.Thread(target=run, args=(turn,)) for turn in turns]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return failed


class OfAsyncio:
    """The same of asyncio; aiomysql. Tasks of a worker share them."""

    connects: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    messages: Any = None

    def __init__(self, sql: Any = None, keys: Any = None, of_mariadb: bool = False) -> None:
        self.sql, self.keys, self.of_mariadb = sql, keys, of_mariadb
        self.lock, self.event = asyncio.Lock(), asyncio.Event()

    async def query(self, text: str) -> Reply:
        if self.of_mariadb:
            async with self.sql.cursor() as cursor:
                count = await cursor.execute(text)
                return count, await cursor.fetchone() if cursor.description else None
        found = await self.sql.execute(text)
        return found.rowcount, await found.fetchone() if found.description else None

    async def ask(self, *command: Any) -> Any:
        return await self.keys.execute_command(*command)

    async def multi(self, commands: Sequence[Sequence[Any]]) -> Any:
        several = self.keys.pipeline(transaction=True)
        for each in commands:
            several.execute_command(*each)
        return await several.execute()

    async def watch(self, name: str, change: Callable[[Any], Any], **lease: int) -> Any:
        async with self.keys.pipeline() as watching:
            await watching.watch(name)
            value = change(await watching.get(name))
            watching.multi()
            watching.set(name, value, **lease)
            return await watching.execute()

    async def hear(self, seconds: float) -> Any:
        found = await self.messages.get_message(timeout=seconds)
        return found and found["data"]

    async def subscribe(self, channel: str) -> None:
        await self.messages.subscribe(channel)

    async def unsubscribe(self, channel: str) -> None:
        await self.messages.unsubscribe(channel)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        async with self.lock:
            yield

    async def wait(self, seconds: float) -> bool:
        try:
            return await asyncio.wait_for(self.event.wait(), seconds)
        except TimeoutError:
            return False

    async def wait_for_notice(self, seconds: float) -> bool:
        return await self.wait(seconds)

    async def notice(self) -> None:
        self.event.set()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Self]:
        """The clients of a task."""
        if self.connects is None:
            yield self
            return
        async with self.connects() as sql:
            own = copy(self)
            own.sql = sql
            yield own

    async def together(self, turns: Sequence[Turn], grouped: bool = False) -> list[str]:
        """Each in a task of its own. `grouped`: the first error cancels the others."""
        if not grouped:
            told = await asyncio.gather(*(_turn(self, turn) for turn in turns), return_exceptions=True)
            return [name_of(each) for each in told if isinstance(each, BaseException)]
        failed: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                for turn in turns:
                    group.create_task(_turn(self, turn))
        except* ERRORS as errors:
            failed += map(name_of, errors.exceptions)
        return failed


Clients = Blocking | OfAsyncio


async def _turn(clients: Clients, turn: Turn) -> None:
    async with clients.connected() as own:
        await turn(own)
