"""The gates of asyncio: psycopg's AsyncConnection, redis.asyncio (gates/redis/coroutines.py), and sleep.

A worker's coroutine runs in an event loop in the worker's own thread. When a command stands at its gate, so does the
loop, and no other coroutine of this worker goes on meanwhile, as it would. That is noticed (AtATime). Workers are
interleaved as usual.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import psycopg
from psycopg import waiting

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates import clocks
from lost_update_lab.gates.at_a_time import AtATime
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.postgres import gate
from lost_update_lab.runs.place import Active, anywhere, beside, connecting, here
from lost_update_lab.servers.postgres.bypass import made

_sleep = asyncio.sleep
_wait_conn, _wait_conn_async = waiting.wait_conn, waiting.wait_conn_async


async def wait(connection: Any, gen: Any, *args: Any, **keywords: Any) -> Any:
    if here() is None:
        if Active.run is not None:
            Active.bypassed("a command to PostgreSQL")
        writes = gate.may_write(gen)
        found = await driver.wait_async(connection, gen, *args, **keywords)
        gate.published(connection, writes)
        return found
    AtATime.look()
    return gate.wait(connection, gen)


async def connect(cls: Any, *args: Any, **keywords: Any) -> Any:
    """The handshake is not a step."""
    with connecting(), beside():
        connection = await driver.connect_async(cls, *args, **keywords)
    made().add(connection.info.backend_pid)
    return connection


async def wait_conn(*args: Any, **keywords: Any) -> Any:
    """A worker's handshake keeps its loop: no other coroutine may run meanwhile, beside the gates."""
    return _wait_conn(*args, **keywords) if anywhere() else await _wait_conn_async(*args, **keywords)


async def sleep(delay: float, result: Any = None) -> Any:
    if here() is None or delay <= 0:
        return await _sleep(delay, result)
    AtATime.look()
    clocks.sleep(delay)
    return result


def install(patches: Patches) -> None:
    AtATime.seen.clear()
    patches.method(psycopg.AsyncConnection, "wait", wait)
    patches.method(waiting, "wait_conn_async", wait_conn)
    patches.method(psycopg.AsyncConnection, "connect", classmethod(connect))
    patches.everywhere(asyncio.sleep, sleep)
    if "redis.asyncio" in sys.modules:
        from lost_update_lab.gates.redis import coroutines

        coroutines.install(patches)
