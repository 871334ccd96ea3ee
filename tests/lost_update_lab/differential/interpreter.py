"""Runs a program: each part is a tuple, whose first item names what is done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pymysql
import redis

from tests.lost_update_lab.differential.clients import ERRORS, Clients, name_of
from tests.lost_update_lab.differential.commands import Part, Program
from tests.lost_update_lab.differential.memory import Memory


class Interpreter:
    """One thread, or task, that runs a program. For each kind of part it has a method `do_…`."""

    def __init__(self, clients: Clients, memory: Memory) -> None:
        self.clients, self.memory = clients, memory

    async def result(self, program: Program) -> str:
        """What an operation that runs this returns."""
        try:
            await self.run(program)
        except ERRORS as error:
            self.memory.errors.append(f"!{name_of(error)}")
        return self.memory.told()

    async def run(self, program: Sequence[Part]) -> None:
        for kind, *given in program:
            await getattr(self, f"do_{kind}")(*given)

    # -- commands -------------------------------------------------------------------------------------------------

    async def do_sql(self, text: str, keep: str) -> None:
        count, row = await self.clients.query(self.memory.filled(text))
        if keep == "found":
            self.memory.keep(keep, row)
        else:
            told = row[0] if row else None if keep in ("n", "seen") else count
            self.memory.keep(keep, told)

    async def do_key(self, asked: Sequence[Any], keep: str) -> None:
        reply = await self.clients.ask(*map(self.memory.filled, asked))
        self.memory.keep(keep, reply)

    async def do_multi(self, commands: Sequence[Sequence[Any]]) -> None:
        found = await self.clients.multi([list(map(self.memory.filled, each)) for each in commands])
        numbers = [int(each) for each in found if str(each).isdigit()]
        self.memory.n = numbers[-1] if numbers else 0

    async def do_watch(self, name: str, lease: int) -> None:
        memory = self.memory

        def change(value: Any) -> int:
            memory.n = int(value or 0)
            return memory.n + memory.own

        try:
            await self.clients.watch(name, change, **({"px": lease} if lease else {}))
            memory.done = True
        except redis.WatchError:
            memory.done = False

    async def do_hear(self, seconds: float) -> None:
        found = await self.clients.hear(seconds)
        self.memory.done = found is not None
        self.memory.n = int(found or 0)

    async def do_subscribe(self, channel: str) -> None:
        await self.clients.subscribe(channel)

    async def do_unsubscribe(self, channel: str) -> None:
        await self.clients.unsubscribe(channel)

    async def do_transaction(self, level: str, program: Program, end: str) -> None:
        if self.clients.of_mariadb:
            if level:
                await self.clients.query(f"SET TRANSACTION ISOLATION LEVEL {level}")
            await self.clients.query("START TRANSACTION")
        else:
            await self.clients.query(f"BEGIN ISOLATION LEVEL {level}" if level else "BEGIN")
        try:
            await self.run(program)
        except ERRORS:
            await self.clients.query("ROLLBACK")
            raise
        await self.clients.query(end)

    async def do_savepoint(self, program: Program) -> None:
        await self.clients.query("SAVEPOINT s")
        try:
            await self.run(program)
        except (psycopg.Error, pymysql.MySQLError) as error:
            await self.clients.query("ROLLBACK TO SAVEPOINT s")
            self.memory.errors.append(name_of(error))

    # -- branches -------------------------------------------------------------------------------------------------

    async def do_if(self, program: Program) -> None:
        if self.memory.done:
            await self.run(program)

    async def do_more(self, than: int, program: Program) -> None:
        if self.memory.n > than:
            await self.run(program)

    async def do_loop(self, tried: Part, poll: float, times: int) -> None:
        for _ in range(times):
            await self.run([tried])
            if self.memory.done:
                break
            await self.clients.sleep(poll)

    async def do_try(self, program: Program) -> None:
        try:
            await self.run(program)
        except ERRORS as error:
            self.memory.errors.append(name_of(error))

    async def do_finally(self, program: Program, after: Program) -> None:
        try:
            await self.run(program)
        finally:
            await self.run(after)

    # -- time -----------------------------------------------------------------------------------------------------

    async def do_sleep(self, seconds: float) -> None:
        await self.clients.sleep(seconds)

    async def do_timeout(self, seconds: float, program: Program) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.run(program)
        except TimeoutError:
            self.memory.done = False

    async def do_look(self, clock: str) -> None:
        by_number = clock == "time"
        self.memory.at = datetime.fromtimestamp(time.time(), UTC) if by_number else datetime.now(UTC)

    async def do_compare(self, how: str) -> None:
        seen, at = self.memory.seen, self.memory.at
        self.memory.done = {"<": seen < at, "<=": seen <= at, "=": seen == at}[how]

    async def do_passed(self, seconds: float) -> None:
        self.memory.done = self.memory.at - self.memory.seen > timedelta(seconds=seconds)

    # -- several threads, or tasks --------------------------------------------------------------------------------

    async def do_gather(self, programs: Sequence[Program]) -> None:
        await self._together(programs, grouped=False)

    async def do_group(self, programs: Sequence[Program]) -> None:
        await self._together(programs, grouped=True)

    async def _together(self, programs: Sequence[Program], grouped: bool) -> None:
        others = [Memory(self.memory.own + 1 + number, self.memory.shared) for number in range(len(programs))]
        turns = [partial(_turn, *each) for each in zip(programs, others, strict=True)]
        self.memory.of_others(others, await self.clients.together(turns, grouped))

    async def do_connected(self, program: Program) -> None:
        async with self.clients.connected() as clients:
            await Interpreter(clients, self.memory).run(program)

    async def do_put(self) -> None:
        self.memory.shared["x"] = self.memory.n + self.memory.own

    async def do_take(self) -> None:
        self.memory.n = self.memory.shared.get("x", 0)

    async def do_lock(self, program: Program) -> None:
        async with self.clients.locked():
            await self.run(program)

    async def do_set(self) -> None:
        self.clients.event.set()

    async def do_clear(self) -> None:
        self.clients.event.clear()

    async def do_asks(self) -> None:
        self.memory.done = self.clients.event.is_set()

    async def do_wait(self, seconds: float) -> None:
        self.memory.done = await self.clients.wait(seconds)

    async def do_notice(self) -> None:
        await self.clients.notice()

    async def do_waits_for_notice(self, seconds: float) -> None:
        self.memory.done = await self.clients.wait_for_notice(seconds)

    async def do_yield(self) -> None:
        await asyncio.sleep(0)


async def _turn(program: Program, memory: Memory, clients: Clients) -> None:
    await Interpreter(clients, memory).run(program)
