"""The gates of asyncio: psycopg's AsyncConnection, redis.asyncio (gates/redis/coroutines.py), and sleep.

A coroutine that stands at its gate leaves its event loop (event_loop.py) to the others of its worker. A loop that was
made in another way than asyncio's own has no gates: when one of its coroutines stands, so do all, and no other one goes
on meanwhile, as it would. That is noticed (AtATime). Workers are interleaved as usual.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
from psycopg import waiting

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates import clocks
from lost_update_lab.gates.at_a_time import AtATime
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.postgres import gate, no_step, unheard
from lost_update_lab.gates.postgres.connections import sent_by_the_end
from lost_update_lab.gates.redis import coroutines
from lost_update_lab.model.effects import NOBODY
from lost_update_lab.runs.place import Active, anywhere, beside, connecting, here

_sleep = asyncio.sleep
_wait_conn, _wait_conn_async = waiting.wait_conn, waiting.wait_conn_async


async def wait(connection: Any, gen: Any, *args: Any, **keywords: Any) -> Any:
    place = here()
    if place is None:
        if anywhere():  # part of a handshake: no other coroutine may run meanwhile, beside the gates
            return gate.wait(connection, gen)
        if Active.run is not None:
            Active.bypassed("a command to PostgreSQL")
        no_step.note_clock(gen)
        writes = no_step.may_write(gen)
        found = await driver.wait_async(connection, gen, *args, **keywords)
        no_step.published(connection, writes)
        return found
    if place.loop:
        leaves = partial(unheard.leave, place.run, place.task, connection)
        return await place.loop.live(place.task, gate.waiting(place, connection, gen), leaves)
    AtATime.look()
    return gate.wait(connection, gen)


async def connect(cls: Any, *args: Any, **keywords: Any) -> Any:
    """The handshake is not a step."""
    with connecting(), beside():
        return await driver.connect_async(cls, *args, **keywords)


async def close(connection: Any) -> None:
    """As one that is no coroutine's (gates/postgres/connections.py), but its session does not stay."""
    place = here()
    if place and not place.run.ending:
        with suppress(psycopg.Error):
            for send in sent_by_the_end(connection):
                await send()
    await driver.close_async(connection)


async def wait_conn(*args: Any, **keywords: Any) -> Any:
    """A worker's handshake keeps its loop: no other coroutine may run meanwhile, beside the gates."""
    return _wait_conn(*args, **keywords) if anywhere() else await _wait_conn_async(*args, **keywords)


async def cancel_safe(connection: Any, **keywords: Any) -> Any:
    """The other coroutines of the loop may go on meanwhile."""
    place = here()
    if place is None:
        return await driver.cancel_safe_async(connection, **keywords)
    gate.cancel(connection, place)
    return await _sleep(0)


async def sleep(delay: float, result: Any = None) -> Any:
    place = here()
    if place is None or delay <= 0:
        return await _sleep(delay, result)
    if place.loop:
        steps = place.run.waiting(place.task, NOBODY, float(delay), f"sleep {delay:g} s")
        await place.loop.live(place.task, steps)
        return result
    AtATime.look()
    clocks.sleep(delay)
    return result


def install(patches: Patches) -> None:
    AtATime.seen.clear()
    patches.method(psycopg.AsyncConnection, "wait", wait)
    patches.method(psycopg.AsyncConnection, "cancel_safe", cancel_safe)
    patches.method(psycopg.AsyncConnection, "close", close)
    patches.method(waiting, "wait_conn_async", wait_conn)
    patches.method(psycopg.AsyncConnection, "connect", classmethod(connect))
    patches.everywhere(asyncio.sleep, sleep)
    coroutines.install(patches)
