"""What goes on in an event loop beside an operation, for ever: a pool's own tasks and timers, a heartbeat."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import psycopg_pool
import pytest

from lost_update_lab import Result, worker

Trial = Callable[..., Result]
Deposit = Callable[[int, str], Awaitable[None]]


def account(sql: Any) -> None:
    sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    sql.execute("INSERT INTO account VALUES (1, 100)")


async def from_a_pool(amount: int, lock: str) -> None:
    """The pool has a timer, which it sets every 600 seconds."""
    url = os.environ["DATABASE_URL"]
    made = psycopg_pool.AsyncConnectionPool(url, min_size=1, max_size=2, open=False)
    async with made as pool, pool.connection() as sql:
        found = await sql.execute(f"SELECT balance FROM account WHERE id = 1{lock}".encode())
        (balance,) = await found.fetchone() or (0,)
        await sql.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + amount])


async def beside_a_heartbeat(amount: int, lock: str) -> None:
    stops = asyncio.Event()

    async def beats() -> None:
        while not stops.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stops.wait(), 5)

    beating = asyncio.create_task(beats())
    await from_a_pool(amount, lock)
    stops.set()
    await beating


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(("lock", "verdict"), [(" FOR UPDATE", "kept"), ("", "violated")])
@pytest.mark.parametrize("deposit", [from_a_pool, beside_a_heartbeat])
def test_it_is_no_progress_of_a_worker_that_waits(
    trial: Trial, capfd: pytest.CaptureFixture[str], deposit: Deposit, lock: str, verdict: str
) -> None:
    """A worker that waited for the other's lock did so for 50,000 timers: no search came to its end. What is cut off
    when a schedule ends is reported to nobody."""
    workers = [worker("Ann", deposit, 1, lock), worker("Bob", deposit, 10, lock)]
    result = trial(workers, setup=account, control=False)
    assert (result.verdict, result.exhausted) == (verdict, True)
    assert capfd.readouterr().err == ""
