"""The gate of psycopg: everything that a Connection sends passes its `wait`, Django's ORM included."""

from __future__ import annotations

from functools import partial
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.postgres.connections import connect
from lost_update_lab.gates.postgres.describe import beyond, describe, how_to_send, sending
from lost_update_lab.gates.postgres.step import SqlCommand, begin, execute
from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Halt, Task, halt
from lost_update_lab.runs.place import Active, Here, here
from lost_update_lab.runs.run import Run
from lost_update_lab.servers.postgres.server import NAME, PostgresServer


def wait(connection: psycopg.Connection[Any], gen: Any, *args: Any, **keywords: Any) -> Any:
    place = here()
    if place is None:
        if Active.run is not None:
            Active.bypassed("a command to PostgreSQL")
        return driver.wait(connection, gen, *args, **keywords)
    status = connection.pgconn.transaction_status
    name = gen.__name__
    if name in driver.SILENT or (
        name in (driver.COMMIT, driver.ROLLBACK) and status == TransactionStatus.IDLE
    ):
        return driver.wait(connection, gen, *args, **keywords)
    server = place.run.servers[NAME]
    assert isinstance(server, PostgresServer)
    if place.run.ending:
        return _unwind(place.task, server, connection, gen, name)
    given = driver.given_to(gen)
    if error := beyond(name, given):
        place.run.error = error
        raise psycopg.NotSupportedError(str(error))
    try:
        return _live(
            place, connection, gen, driver.kind_of(gen, given), given, status == TransactionStatus.IDLE
        )
    except Halt:  # no thread may leave its session inside a transaction
        server.end_sessions([connection])
        gen.close()
        raise


def _live(
    place: Here, connection: psycopg.Connection[Any], gen: Any, kind: str, given: dict[str, Any], idle: bool
) -> Any:
    """A thread executes a command. `kind`: the name of psycopg's generator; `given`: its arguments."""
    run, task = place.run, place.task
    known: Any = connection
    known.explorer_isolation, name = connection.isolation_level, _name_of(run, task, connection)
    known.explorer_who = task.worker.index, *name
    source = given.get("self")
    op = describe(kind, given, idle)
    if kind in (driver.EXECUTE, driver.STATEMENT) and idle and not connection.autocommit:
        text = driver.begin_command(connection)
        begins = SqlCommand(
            name, Op(NAME, text.decode(), text, local=True, reads=True), connection.isolation_level
        )
        begins.begins, begins.send = True, sending(text)
        run.arrives(task, begins)
        run.live(task, begin(run, task, connection, begins.op, driver.begin(connection)))
    tells = hasattr(source, "pgresult")
    event = run.arrives(task, SqlCommand(name, op, connection.isolation_level, tells=tells))
    result = (lambda: getattr(source, "pgresult", None)) if tells else None
    try:
        return run.live(task, execute(run, task, connection, op, gen, result))
    finally:
        if run.recorder:
            event.send = event.send or how_to_send(connection, op, kind, given)


def _name_of(run: Run, task: Task, connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """The name of the connection: the thread that uses it, and its place among the connections of this thread."""
    sessions, used = task.worker.sessions.setdefault(NAME, {}), task.uses.setdefault(NAME, [])
    if sessions.get(connection, task) is not task and run.recorder:
        run.recorder.opaque("two threads use one session of PostgreSQL")
    sessions[connection] = task
    if connection not in used:
        used.append(connection)
    return task.number, used.index(connection)


def _unwind(
    task: Task, server: PostgresServer, connection: psycopg.Connection[Any], gen: Any, name: str
) -> Any:
    """The run is over: only a client's own cleaning up passes."""
    server.end_sessions([connection])
    if name in (driver.ROLLBACK, driver.EXIT):
        return driver.wait(connection, gen)
    gen.close()
    return halt(task)


def install(patches: Patches) -> None:
    driver.LIBRARY.check()
    patches.method(psycopg.Connection, "wait", wait)
    patches.method(psycopg.Connection, "connect", classmethod(connect))
    patches.everywhere(psycopg.connect, partial(connect, psycopg.Connection))
