"""Commands that are cancelled while they are under way: the referee finds no outcome that the search does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import psycopg
import pytest
from redis.asyncio import Redis

from lost_update_lab.search.search import SearchResult
from tests.lost_update_lab.bank import Bank, select_for_update

Explore = Callable[..., SearchResult]
ADD = "UPDATE account SET balance = balance + %s WHERE id = 1"


async def _add(bank: Bank, amount: int) -> None:
    async with await psycopg.AsyncConnection.connect(bank.database) as sql:
        await sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE")
        await sql.execute(ADD, [amount])


def run(deposit: Callable[[], Any]) -> str:
    asyncio.run(deposit())
    return "ok"


def in_a_transaction(bank: Bank, amount: int) -> str:
    async def deposit() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(_add(bank, amount), 0.05)

    return select_for_update(bank, amount) if amount > 10 else run(deposit)


def by_anyio(bank: Bank, amount: int) -> str:
    async def deposit() -> None:
        with anyio.move_on_after(0.05):
            await _add(bank, amount)

    return select_for_update(bank, amount) if amount > 10 else run(deposit)


IN_POSTGRES, DEEP = (in_a_transaction, by_anyio), pytest.mark.deep


def in_redis(bank: Bank, amount: int) -> str:
    """The command that was given up may come after the one that follows it."""

    async def deposit() -> None:
        async with Redis.from_url(bank.redis_url) as keys:
            with suppress(TimeoutError):
                await asyncio.wait_for(keys.set("paid", amount), 0.05)
            await keys.append("paid", "!")

    return run(deposit)


@pytest.mark.deep(short=False)
@pytest.mark.parametrize("deposit", [in_redis, *(pytest.param(each, marks=DEEP) for each in IN_POSTGRES)])
def test_nothing_is_left_out(explore: Explore, deposit: Callable[..., str]) -> None:
    full, every = explore(deposit), explore(deposit, reduction="none")
    assert (full.exhausted, every.exhausted) == (True, True)
    assert full.finals == every.finals
    assert len(full.finals) > 1
