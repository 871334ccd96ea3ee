"""The gate of PyMySQL: everything that a Connection sends passes `_execute_command`, Django's ORM included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
from pymysql.connections import Connection

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.gates.mariadb.describe import beyond, describe, waiting
from lost_update_lab.gates.mariadb.step import answered, execute, server_of
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import BY_EXECUTE, Broken
from lost_update_lab.model.workers import Halt, Task, halt
from lost_update_lab.runs.place import Active, Here, beside, connecting, here
from lost_update_lab.runs.run import Run
from lost_update_lab.servers.connections_before import existing
from lost_update_lab.servers.mariadb.bypass import made
from lost_update_lab.servers.mariadb.server import NAME
from lost_update_lab.servers.mariadb.session import look, session_of

NO_SERVER = "a command to MariaDB, and the explorer was given no MariaDB server"
TO_OTHERS = (
    "keep it on PostgreSQL or Redis there; the lab's own strategies: manage.py explore --store mariadb"
)
NO_GATE = "no gate for this command of PyMySQL (number {})"
#: what a client sends to clean up
_CLEANS = (driver.ROLLBACK, driver.AUTOCOMMIT)


def gated(name: str) -> Callable[..., Any]:
    """The method of a Connection that is called `name`, as a step."""
    plain = driver.methods[name]

    def method(connection: Any, *args: Any, **keywords: Any) -> Any:
        place = here()
        if place is None:
            if Active.run is not None:
                Active.bypassed("a command to MariaDB")
            return plain(connection, *args, **keywords)
        run, task = place.run, place.task
        if NAME not in run.servers:
            run.error = Broken(NO_SERVER, TO_OTHERS)
            halt(task)
        _known(run, task, connection)
        given = args[0] if args else keywords.get("sql", name)
        text = given.decode() if isinstance(given, bytes) else str(given)
        if run.ending:
            return _unwind(place, connection, name, text)
        if name in (driver.COMMIT, driver.ROLLBACK) and not driver.inside(connection):
            with beside():
                return plain(connection, *args, **keywords)
        if error := beyond(text, bool(keywords.get("unbuffered", len(args) > 1 and args[1]))):
            run.error = error
            raise pymysql.NotSupportedError(str(error))
        wishes = driver.wishes_autocommit(connection) if name == driver.AUTOCOMMIT else None
        op = describe(name, text, driver.inside(connection), wishes)
        return _live(run, task, connection, op, lambda: plain(connection, *args, **keywords))

    return method


def _live(run: Run, task: Task, connection: Any, op: Op, call: Callable[[], Any]) -> Any:
    connection.explorer_op = op
    try:
        return execute(run, task, connection, op, call)
    except Halt:  # no thread may leave its session inside a transaction
        server_of(run).end_sessions([connection])
        raise
    finally:
        connection.explorer_op = None


def send(connection: Any, command: int, sql: Any) -> Any:
    """Inside a step: send the command, and stand still until its answer is there."""
    place = here()
    if place is None or place.run.ending:
        return driver.send(connection, command, sql)
    op: Op | None = getattr(connection, "explorer_op", None)
    if op is None:
        place.run.error = Broken(NO_GATE.format(command), BY_EXECUTE)
        halt(place.task)
    text = sql.decode() if isinstance(sql, bytes) else str(sql)
    driver.send(connection, command, waiting(text))
    place.run.live(place.task, answered(place.run, place.task, connection, op))
    session = session_of(connection)
    if (
        session.late and waiting(text, over=True) != text
    ):  # it has waited for a name: ask again without waiting
        driver.hear_out(connection)
        session.late = False
        driver.send(connection, command, waiting(text, over=True))
    return None


def _known(run: Run, task: Task, connection: Any) -> None:
    """Name the connection by the thread that uses it, and by its place among the connections of this thread."""
    if run.recorder:
        run.recorder.opaque("MariaDB: each schedule is executed")
    if not hasattr(connection, "explorer_session"):
        with beside():
            connection.explorer_session = look(driver, connection)
    sessions, used = task.worker.sessions.setdefault(NAME, {}), task.uses.setdefault(NAME, [])
    sessions[connection] = task
    if connection not in used:
        used.append(connection)
    session_of(connection).who = task.worker.index, task.number, used.index(connection)


def _unwind(place: Here, connection: Any, name: str, text: str) -> Any:
    """The run is over: only a client's own cleaning up passes, and that was done already."""
    server_of(place.run).end_sessions([connection])
    if name in _CLEANS or text.upper().startswith("ROLLBACK"):
        return None
    return halt(place.task)


def connect(connection: Any, *args: Any, **keywords: Any) -> Any:
    """The handshake is not a step, and no clock that it looks at is the worker's. If the explorer was given no MariaDB,
    its address is one like any other (gates/outside.py)."""
    place = here()
    if place is not None and NAME not in place.run.servers:
        driver.connect(connection, *args, **keywords)
        return
    with connecting(), beside():
        driver.connect(connection, *args, **keywords)
    made().add(driver.number(connection))


def close(connection: Any) -> None:
    """What its session held is free at once. The server would end the session at some later moment."""
    place = here()
    if place is not None and NAME in place.run.servers and hasattr(connection, "explorer_session"):
        server_of(place.run).end_sessions([connection])
    driver.close(connection)


def ping(connection: Any, *args: Any, **keywords: Any) -> None:
    """No other worker sees a ping."""
    with beside():
        driver.ping(connection, *args, **keywords)


def install(patches: Patches) -> None:
    driver.LIBRARY.check()
    made().update(driver.number(each) for each in existing(Connection) if driver.is_open(each))
    for name in driver.methods:
        patches.method(Connection, name, gated(name))
    patches.method(Connection, driver.SEND, send)
    patches.method(Connection, "ping", ping)
    patches.method(Connection, "connect", connect)
    patches.method(Connection, "close", close)
