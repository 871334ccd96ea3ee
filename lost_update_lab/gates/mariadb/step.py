"""One command to MariaDB as a step. Each is executed on the real server, in every schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.gates.mariadb.describe import lasts, named_patience, sets, shown, tells_patience
from lost_update_lab.model.commands import Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import Standing, Task, halt
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.mariadb.locks import NEWS_WITHIN_MS
from lost_update_lab.servers.mariadb.server import ENDS, NAME, MariaDBServer
from lost_update_lab.servers.mariadb.session import look_again, session_of

#: the errors of a command that was interrupted, and of one whose time to wait for a row is over
_INTERRUPTED, _TIMED_OUT = 1317, 1205
_LOST = 2013


def execute(run: Run, task: Task, connection: Any, op: Op, call: Callable[[], Any]) -> Any:
    """Stand before `op`, then `call()` what sends it and reads the answer. Returns the result of the call."""
    server = server_of(run)
    session = session_of(connection)
    run.live(task, pending.standing(run, task, op))
    server.changed |= not op.reads  # a counter moves on even if the insert is never committed
    _meets(task, server, connection, op)
    if lasts(op.text):  # it may get it at any time
        server.note(connection, digest(session.holds, op.identity))
    try:
        found = call()
    except pymysql.MySQLError as raised:
        error = _as_it_would_be(session.late, raised)
        session.busy = session.late = False
        driver.look(connection)
        told = f"{type(error).__name__}: {', '.join(map(str, error.args))}"
        _after(task, server, connection, op, told.encode())
        _tell(run, task, op, told.encode(), told)
        raise error from None
    session.busy = session.late = False
    answer = driver.answer(connection)
    if not driver.commits_by_itself(connection):
        driver.look(connection)
    reply = repr(answer).encode()
    _after(task, server, connection, op, reply)
    _tell(run, task, op, reply, shown(op.text, answer))
    if task.loses_reply:
        _lose(run, task, server, connection)
    return found


def answered(world: World, task: Task, connection: Any, op: Op) -> Standing:
    """The command was sent. Ends when its answer is there. If none comes, the server is asked whether it waits.
    If no other session is inside a transaction, or holds a lock, nothing could block it."""
    server, session = server_of(world), session_of(connection)
    session.busy, session.asks = True, op.text
    others = [s for w in world.workers for s in w.sessions.get(NAME, ()) if s is not connection]
    patience = NEWS_WITHIN_MS if server.holds(others) else None
    while not driver.has_answered(connection, patience):
        try:
            waits_for = "" if session.late else server.waits_for(connection, op)
        except Broken as broken:
            world.error = broken
            halt(task)
        if not waits_for:
            patience = min(2 * (patience or NEWS_WITHIN_MS), 100)  # a busy machine: it will come
            continue
        task.session = connection

        def expire() -> None:
            session.late = True
            server.interrupt(connection)

        task.expire = expire
        task.history.meets(session.who, server.contents())
        seconds = session.patience if waits_for == "rows" else named_patience(op.text)
        yield from pending.blocked(world, task, seconds)
        task.history.meets(session.who, server.contents())
        patience = NEWS_WITHIN_MS


def server_of(world: World) -> MariaDBServer:
    server = world.servers[NAME]
    assert isinstance(server, MariaDBServer)
    return server


def _meets(task: Task, server: MariaDBServer, connection: Any, op: Op) -> None:
    """What is committed decides what a command reads, writes or locks, and what its transaction sees from then on."""
    if op.local or op.text in ENDS or not driver.is_open(connection):
        return
    if driver.inside(connection) or not driver.commits_by_itself(connection) or lasts(op.text):
        task.history.meets(session_of(connection).who, server.contents(), server.hidden(), op.identity)


def _as_it_would_be(late: bool, raised: pymysql.MySQLError) -> pymysql.MySQLError:
    """The scheduler has interrupted the command because its time was over. That has the effect of the time-out: it
    undoes this one statement."""
    if late and raised.args and raised.args[0] == _INTERRUPTED:
        return pymysql.OperationalError(_TIMED_OUT, "Lock wait timeout exceeded; try restarting transaction")
    return raised


def _after(task: Task, server: MariaDBServer, connection: Any, op: Op, reply: bytes) -> None:
    session = session_of(connection)
    server.ask_again()  # an error, too, frees what its transaction held
    if not driver.is_open(connection):
        task.history.is_out(session.who)
        return
    inside = driver.inside(connection)
    session.changed |= sets(op.text)
    if tells_patience(op.text):
        look_again(driver, connection)
    if lasts(op.text):
        server.note(connection, digest(session.holds, op.identity, reply))
    if not inside and not session.holds:
        task.history.is_out(session.who)
    if not op.reads and not (inside and _only_rows(op.text)):
        server.touched()


def _only_rows(text: str) -> bool:
    """Is it certain that the command commits nothing by itself?"""
    return text.lstrip()[:6].upper() in ("INSERT", "UPDATE", "DELETE", "SELECT")


def _tell(run: Run, task: Task, op: Op, reply: bytes, told: str) -> None:
    task.history.add(op.identity, reply)
    pending.tell(run, task, op, told)
    pending.hear(run, task, reply)


def _lose(run: Run, task: Task, server: MariaDBServer, connection: Any) -> None:
    server.end_sessions([connection])
    session = session_of(connection)
    session.cut = driver.take_away(connection)
    task.history.is_out(session.who)
    run.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
    task.history.add(b"lost")
    pending.hear(run, task, "lost")
    raise pymysql.OperationalError(_LOST, "Lost connection to MySQL server during query")
