"""The gates of asyncio: psycopg's AsyncConnection, redis.asyncio (gates/redis/coroutines.py), and sleep.

A worker's coroutine runs in an event loop in the worker's own thread. When a command stands at its gate, so does the
loop: the coroutines of one worker take turns only between commands. Workers are interleaved as usual.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import psycopg

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates import clocks
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.postgres import gate
from lost_update_lab.runs.place import Active, beside, connecting, here
from lost_update_lab.servers.postgres.bypass import made

_sleep = asyncio.sleep


async def wait(connection: Any, gen: Any, *args: Any, **keywords: Any) -> Any:
    if here() is None:
        if Active.run is not None:
            Active.bypassed("a command to PostgreSQL")
        return await driver.wait_async(connection, gen, *args, **keywords)
    return gate.wait(connection, gen)


async def connect(cls: Any, *args: Any, **keywords: Any) -> Any:
    """The handshake is not a step."""
    with connecting(), beside():
        connection = await driver.connect_async(cls, *args, **keywords)
    made().add(connection.info.backend_pid)
    return connection


async def sleep(delay: float, result: Any = None) -> Any:
    if here() is None or delay <= 0:
        return await _sleep(delay, result)
    clocks.sleep(delay)
    return result


def install(patches: Patches) -> None:
    patches.method(psycopg.AsyncConnection, "wait", wait)
    patches.method(psycopg.AsyncConnection, "connect", classmethod(connect))
    patches.everywhere(asyncio.sleep, sleep)
    if "redis.asyncio" in sys.modules:
        from lost_update_lab.gates.redis import coroutines

        coroutines.install(patches)
