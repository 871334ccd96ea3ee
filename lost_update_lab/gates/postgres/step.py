"""One command to PostgreSQL as a step: sent by a thread, or replayed from the recording."""

from __future__ import annotations

import select
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.postgres import noting
from lost_update_lab.gates.postgres.connections import closed_connection, cut
from lost_update_lab.gates.postgres.describe import (
    calls,
    changed,
    locks_rows,
    replies_of,
)
from lost_update_lab.gates.postgres.fed import CONNECTION_GONE, fed
from lost_update_lab.gates.postgres.told import lose, meets, tell
from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import WritesByReading
from lost_update_lab.model.server import NEWS_WITHIN_MS
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.makes import MAKES, refused
from lost_update_lab.servers.postgres import idle_limits, limits
from lost_update_lab.servers.postgres.limits import TimeLimits
from lost_update_lab.servers.postgres.locks import keeps
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer

GIVEN_UP = "canceling statement due to user request"


def begin(world: World, task: Task, connection: Any, op: Op, gen: Any) -> Standing:
    """psycopg begins a transaction by itself before the first command: a step of its own. What its client gives up then
    is this BEGIN; or the command, if that is `alone` (Op)."""
    if world.fed:
        yield from fed(world, task, connection, op, gen, begins=True, tells=False)
        return
    server = world.servers[POSTGRES]
    assert isinstance(server, PostgresServer)
    yield from pending.standing(world, task, op)
    if task.canceled:
        _given_up(world, task, server, connection, op, gen)
        raise psycopg.errors.QueryCanceled(GIVEN_UP)
    world.error = world.error or idle_limits.passed(connection, world.now)
    noting.ask(world, connection, op, begins=True)
    driver.wait(connection, gen)
    server.clock.has_answered(connection.explorer_who, inside=True)
    noting.learn(world, connection, op, b"", "")
    canceling = task.canceling and op.alone
    pending.tell(world, task, op, "")
    pending.hear(world, task, b"")
    task.canceling, task.has_begun = canceling, not op.alone


def execute(
    world: World,
    task: Task,
    connection: Any,
    op: Op,
    gen: Any,
    results: Callable[[], Sequence[PGresult]] | None,
    waits: bool = False,
) -> Standing:
    """`results`: returns what came back, once it has, of each statement; None: the worker is not told. `waits`: it was
    sent, and waits."""
    if world.fed:
        return (yield from fed(world, task, connection, op, gen, begins=False, tells=results is not None))
    server = world.servers[POSTGRES]
    assert isinstance(server, PostgresServer)
    if not waits:
        yield from pending.standing(world, task, op)
    if task.canceled:
        return _given_up(world, task, server, connection, op, gen)
    _before(world, task, server, connection, op, tells=results is not None)
    lifted = limits.lift(connection, op)
    if not (waits or op.reads):
        server.looks.begins(connection, op.text, server.compound)
    try:
        answer = yield from _drive(world, task, server, connection, op, gen, lifted)
    except psycopg.Error as raised:
        raise _failed(world, task, server, connection, op, raised, lifted) from None
    server.looks.let_go(connection)
    limits.put_back(connection, lifted)
    touched = _after(task, server, connection, op)
    idle_limits.answered(connection, world.now)
    found = _came_back(connection, op, results)
    _was_one_step(server, connection, op, found, touched)
    reply, shown = replies_of(found)
    noting.learn(world, connection, op, reply, shown, touched=touched)
    noting.keep(world, op, reply, found)
    tell(world, task, op, reply, shown)
    if task.loses_reply:
        server.end_sessions([connection])
        cut(connection)
        lose(world, task, connection.explorer_who)
        raise psycopg.OperationalError(CONNECTION_GONE)
    return answer


def _was_one_step(
    server: PostgresServer, connection: Any, op: Op, found: Sequence[PGresult], touched: bool
) -> None:
    """Was the command what it was taken to be? Raises WritesByReading."""
    rows, returned = sum(map(changed, found)), sum(each.ntuples for each in found)
    if server.looks.several(connection, op.text, rows, returned, server.compound, op.reads):
        server.answers.forget()
        raise WritesByReading
    if touched and not op.alone and server.compound.changed(rows):
        raise WritesByReading


def _failed(
    world: World,
    task: Task,
    server: PostgresServer,
    connection: Any,
    op: Op,
    raised: psycopg.Error,
    lifted: TimeLimits,
) -> psycopg.Error:
    """The command was answered by an error. Returns what the worker is told."""
    server.looks.let_go(connection)
    if raised.diag.message_primary == MAKES:
        raise refused(op.text) from None
    limits.put_back(connection, lifted)
    touched = _after(task, server, connection, op)
    error = _as_it_would_be(task, raised)
    shown = f"{type(error).__name__}: {str(error).split(chr(10), 1)[0]}"
    noting.learn(world, connection, op, b"", shown, type(error).__name__, touched)
    noting.keep(world, op, ("error", shown), [error.pgresult] if error.pgresult else ())
    tell(world, task, op, b"", shown, type(error).__name__)
    return error


def _came_back(
    connection: Any, op: Op, results: Callable[[], Sequence[PGresult]] | None
) -> Sequence[PGresult]:
    """Also notes whether the transaction has locked anything."""
    found = results() if results else ()
    inside = connection.pgconn.transaction_status != TransactionStatus.IDLE
    connection.explorer_locked = inside and (keeps(connection) or locks_rows(op, found))
    return found


def _before(world: World, task: Task, server: PostgresServer, connection: Any, op: Op, tells: bool) -> None:
    world.error = world.error or idle_limits.passed(connection, world.now)
    server.changed |= not op.reads  # a sequence moves on even if the insert is never committed
    connection.explorer_commits = (
        not connection.closed and connection.pgconn.transaction_status == TransactionStatus.IDLE
    )
    if not connection.closed:
        all_counts = server.answers.sees_all(connection.explorer_isolation)
        status = connection.pgconn.transaction_status
        meets(task, connection.explorer_who, op, server, status, all_counts)
    noting.ask(world, connection, op, tells=tells)
    if op.timed and not connection.closed:
        server.tell_time(connection)


def _given_up(world: World, task: Task, server: PostgresServer, connection: Any, op: Op, gen: Any) -> Any:
    """The server learns that the command was given up when it has just begun: it did nothing, and its transaction has
    failed. So may COMMIT."""
    if task.cancels_begin:
        gen.close()
        connection.pgconn.exec_(b"ROLLBACK")
        found = driver.FAILED
    else:
        found = driver.as_if_it_failed(connection, gen, closed_connection())
    if not connection.closed and connection.pgconn.transaction_status == TransactionStatus.INTRANS:
        connection.pgconn.exec_(driver.FAILS.encode())
    server.way.known = False
    _after(task, server, connection, op)
    tell(world, task, op, b"", f"QueryCanceled: {GIVEN_UP}", "QueryCanceled")
    if found is driver.FAILED:
        raise psycopg.errors.QueryCanceled(GIVEN_UP)
    return found


def _as_it_would_be(task: Task, raised: psycopg.Error) -> psycopg.Error:
    """The scheduler has cancelled the command: to break a deadlock, or as its time was over."""
    error, canceled = raised, isinstance(raised, psycopg.errors.QueryCanceled)
    if task.victim:
        error = psycopg.errors.DeadlockDetected("deadlock detected")
    elif task.late and canceled:
        error = limits.error(task.late)
    task.victim, task.late = False, ""
    return error


def _after(task: Task, server: PostgresServer, connection: Any, op: Op) -> bool:
    """Returns whether others may see something new."""
    if connection.closed or connection.pgconn.transaction_status == TransactionStatus.IDLE:
        task.history.is_out(connection.explorer_who)
    inside = not connection.closed and connection.pgconn.transaction_status != TransactionStatus.IDLE
    _runs(server, connection, op, inside)
    server.clock.has_answered(connection.explorer_who, inside)
    server.ask_again()  # an error, too, frees what its transaction held
    server.note(connection, writes=not op.reads, calls=calls(op))
    touched = not op.reads and connection.pgconn.transaction_status == TransactionStatus.IDLE
    if touched:
        task.worker.commits += 1
        server.touched(connection)
    return touched


def _runs(server: PostgresServer, connection: Any, op: Op, inside: bool) -> None:
    """The command has ended, or waits. `inside`: its session is inside of a transaction."""
    server.draws.drew(connection.explorer_who, server.answers.draws_for(op), op.identity)
    if not inside:
        server.draws.ended(connection.explorer_who, by=op.text)
    if server.answers.overlaps(connection.explorer_isolation):
        server.overlaps.ran(connection.explorer_who, op, inside)


def _drive(
    world: World,
    task: Task,
    server: PostgresServer,
    connection: Any,
    op: Op,
    gen: Generator[Any, Any, Any],
    lifted: TimeLimits,
) -> Standing:
    """Run psycopg's own generator. When no reply comes, the server is asked whether the command is blocked.
    If no other session is inside a transaction, or holds a lock, nothing could block it. `lifted`: how long it may
    wait, or take, in virtual time."""
    sent = world.now
    socket = connection.pgconn.socket
    poller = select.poll()
    others = [s for w in world.workers for s in w.sessions.get(POSTGRES, ()) if s is not connection]
    patience = NEWS_WITHIN_MS if server.looks.holds(connection) or server.holds(others) else None
    try:
        wants = next(gen)
        while True:
            poller.register(
                socket, (select.POLLIN if wants & 1 else 0) | (select.POLLOUT if wants & 2 else 0)
            )
            if events := poller.poll(patience):
                wants = gen.send(_ready(events[0][1]))
                patience = patience and NEWS_WITHIN_MS
            elif task.victim or task.late or task.canceled or not server.is_blocked(connection):
                patience = 2 * (patience or NEWS_WITHIN_MS)  # a busy machine: it will come
            elif server.looks.waits(connection):
                if (place := server.looks.place(connection, op.text)) is None:
                    server.looks.goes_on(connection)
                else:
                    yield from _looks(world, task, server, connection, op, place)
            else:
                seconds, limit = lifted.left(world.now - sent)
                task.sent(connection, partial(_too_late, server=server, limit=limit))
                noting.waits(world, connection, op, lifted)
                _runs(server, connection, op, inside=True)
                task.history.meets(connection.explorer_who, server.contents())
                yield from pending.blocked(world, task, seconds, in_vain=seconds is not None)
                task.history.meets(connection.explorer_who, server.contents())
                noting.goes_on(world, connection, op)
    except StopIteration as done:
        return done.value


def _ready(flags: int) -> int:
    """What poll() says, in psycopg's terms."""
    return (1 if flags & ~select.POLLOUT else 0) | (2 if flags & select.POLLOUT else 0)


def _looks(world: World, task: Task, server: PostgresServer, connection: Any, op: Op, place: str) -> Standing:
    """Its snapshot is taken: what others do until it locks its first row, it does not see. Or a function comes to its
    next statement."""
    noting.looks(world, connection, op, place)
    _runs(server, connection, op, inside=True)
    task.history.meets(connection.explorer_who, server.contents())
    pending.between(world, task, op, place)
    yield
    task.loses_reply |= bool(task.op and task.op.silent)
    task.history.meets(connection.explorer_who, server.contents())
    noting.goes_on(world, connection, op)
    if task.canceled:  # it is let go when it has heard so: cancelled later, it would keep what it waits for
        server.stop(connection)
    else:
        server.looks.goes_on(connection)


def _too_late(world: World, task: Task, server: PostgresServer, limit: str) -> None:
    """Its time to wait is over."""
    if task.op and limit == limits.LOCK:
        server.looks.is_heard(task.op.text, "LOCK_NOT_AVAILABLE")
    task.late = limit
    server.stop(task.session)
    world.wake(task, world.now)
