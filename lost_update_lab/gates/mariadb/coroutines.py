"""The gate of aiomysql: each connection of a worker sends through a twin of PyMySQL's, which has a gate (gate.py).

aiomysql closes a connection whose coroutine is cancelled while it waits for an answer. Whether the server has executed
the command by then, or will when it has the row that it waits for, is not explored.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pymysql
from aiomysql.connection import Connection

from lost_update_lab.adapters import aiomysql as driver
from lost_update_lab.adapters import pymysql as twins
from lost_update_lab.gates.at_a_time import AtATime
from lost_update_lab.gates.cancelled import LET_IT_END
from lost_update_lab.gates.invariant_call import asks_a_server
from lost_update_lab.gates.mariadb import gate
from lost_update_lab.gates.mariadb.closing import ends_by_itself, sent_by_the_end
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.errors import BY_EXECUTE, Broken
from lost_update_lab.model.workers import halt
from lost_update_lab.runs.one_owner import OF_ITS_OWN
from lost_update_lab.runs.place import Active, Here, anywhere, beside, here
from lost_update_lab.servers.connections_before import existing
from lost_update_lab.servers.mariadb.bypass import made
from lost_update_lab.telling.narrative import shortened

NO_GATE = "no gate for this command of aiomysql (number {})"
MADE_OUTSIDE = "a connection of aiomysql was made outside of the workers, in another event loop"
AT_A_TIME = "two coroutines of {who} use one connection of aiomysql at a time, and it mixes up their answers"
CANCELLED = (
    "a coroutine of {who} is cancelled while a command of aiomysql is under way ({command}), and what the server does "
    "then is open"
)


def gated(name: str) -> Any:
    """The method of a Connection that is called `name`, as a step."""
    plain = driver.methods[name]

    async def method(connection: Any, *args: Any, **keywords: Any) -> Any:
        place = anywhere()
        if place is None and driver.twin_of(connection) is None:
            if Active.run is not None:
                Active.bypassed(gate.COMMAND)
            asks_a_server()
            return await plain(connection, *args, **keywords)
        twin = _usable(place, connection)
        ensure_open(connection)
        driver.forget_answer(connection)
        driver.wish(connection, twin)
        try:
            found = await _answered(connection, twin, name, *args, **keywords)
        finally:
            if not twins.is_open(twin):
                driver.cut(connection)
        driver.take_answer(connection, twin, name)
        return found

    return method


def _usable(place: Here | None, connection: Any) -> Any:
    """The twin of the connection. Ends the run if it has none."""
    twin = driver.twin_of(connection)
    if place and twin is None:
        place.run.error = Broken(MADE_OUTSIDE, OF_ITS_OWN)
        halt(place.task)
    return twin


async def _answered(connection: Any, twin: Any, name: str, *args: Any, **keywords: Any) -> Any:
    """What PyMySQL's method does."""
    place = here()
    if place is None:  # part of a handshake: no other coroutine may run meanwhile, beside the gates
        return twins.methods[name](twin, *args, **keywords)
    run, task = place.run, place.task
    steps = gate.asking(place, twin, name, *args, **keywords)
    if place.loop is None:
        AtATime.look()
        return run.live(task, steps)
    if getattr(connection, "explorer_used", False):
        run.error = Broken(AT_A_TIME.format(who=task.worker.name), OF_ITS_OWN)
        halt(task)
    connection.explorer_used = True
    try:
        return await place.loop.live(task, steps)
    except asyncio.CancelledError:
        command = shortened(task.op.text if task.op else name, 60)
        run.error = run.error or Broken(CANCELLED.format(who=task.worker.name, command=command), LET_IT_END)
        return halt(task)
    finally:
        connection.explorer_used = False


def ensure_open(connection: Any) -> None:
    """Raises InterfaceError."""
    if driver.twin_of(connection) is None or not driver.is_open(connection):
        driver.ensure_open(connection)


async def connect(connection: Any) -> None:
    """The handshake is not a step."""
    if anywhere() is None:
        await driver.connect(connection)
        made().append(driver.number(connection))
        return
    twin = driver.new_twin(connection)
    twin.connect()
    driver.adopt(connection, twin)


def close(connection: Any) -> None:
    """As PyMySQL's (gate.py). Other coroutines of its loop do not wait until the session has ended."""
    twin, place = driver.twin_of(connection), here()
    if twin is not None and driver.is_open(connection) and twins.is_open(twin):
        if place and place.loop and place.loop.blocked_by(place.task) and not place.run.ending:
            ends_by_itself(place.run, place.task, twin)
        else:
            twin.close()
    driver.close(connection)


async def ensure_closed(connection: Any) -> None:
    twin, place = driver.twin_of(connection), here()
    if twin is None:
        await driver.ensure_closed(connection)
        return
    if place and driver.is_open(connection) and not place.run.ending:
        with suppress(pymysql.MySQLError):
            for name, text in sent_by_the_end(twin):
                await _answered(connection, twin, name, text)
    close(connection)


async def ping(connection: Any, reconnect: bool = True) -> None:
    """No other worker sees a ping."""
    twin = driver.twin_of(connection)
    if twin is None or not driver.is_open(connection):
        await driver.ping(connection, reconnect)
        return
    with beside():
        twins.ping(twin)


async def send(connection: Any, command: int, sql: Any) -> Any:
    """Everything else that aiomysql sends."""
    place = here()
    if place is None or driver.twin_of(connection) is None:
        return await driver.send(connection, command, sql)
    place.run.error = Broken(NO_GATE.format(command), BY_EXECUTE)
    return halt(place.task)


def install(patches: Patches) -> None:
    driver.LIBRARY.check()
    made().extend(driver.number(each) for each in existing(Connection) if driver.is_open(each))
    for name in driver.methods:
        patches.method(Connection, name, gated(name))
    patches.method(Connection, driver.CONNECT, connect)
    patches.method(Connection, driver.SEND, send)
    patches.method(Connection, driver.ENSURE_OPEN, ensure_open)
    patches.method(Connection, "close", close)
    patches.method(Connection, "ensure_closed", ensure_closed)
    patches.method(Connection, "ping", ping)
