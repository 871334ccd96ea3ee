"""The gate of psycopg: everything that a Connection sends passes its `wait`. Django's ORM goes this way too."""

from __future__ import annotations

import select
from collections.abc import Callable, Generator, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from loadtest.explorer.gates.here import Active, Here, here
from loadtest.explorer.gates.patch import Patches
from loadtest.explorer.gates.psycopg_commands import (
    Send,
    beyond,
    calls,
    describe,
    how_to_send,
    reply_of,
    sending,
    sent,
)
from loadtest.explorer.gates.psycopg_connections import connect
from loadtest.explorer.ops import Op
from loadtest.explorer.playing import Standing, Unknown
from loadtest.explorer.servers.postgres import NAME, PostgresServer
from loadtest.explorer.servers.postgres_locks import NEWS_WITHIN_MS
from loadtest.explorer.tasks import Halt, Task

if TYPE_CHECKING:
    from loadtest.explorer.recording import Recording
    from loadtest.explorer.run import Run

_wait = psycopg.Connection.wait

_SILENT = ("_set_autocommit_gen", "_set_isolation_level_gen", "_set_read_only_gen", "_set_deferrable_gen")


@dataclass(slots=True)
class SqlCommand:
    """A command as it was recorded. `number`: of the worker's connection; `begins`: psycopg's own BEGIN before a
    command; `tells`: its reply is told to the worker."""

    number: int
    op: Op
    isolation: IsolationLevel | None
    begins: bool = False
    tells: bool = False
    send: Send | None = None

    def same(self) -> Hashable:
        return self.number, self.op.identity, self.op.text, self.isolation, self.begins, self.tells

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        connection = recording.connection(task.worker, NAME, self.number)
        sessions = task.worker.sessions.setdefault(NAME, {})
        if self.send is None or (connection not in sessions and connection.closed):
            raise Unknown
        sessions[connection], connection.explorer_isolation = task, self.isolation
        results: list[PGresult] = []
        steps = _noted(sent(connection.pgconn, self.send), results)
        if self.begins:
            yield from _begin(Here(run, task), connection, self.op, steps)
            return
        with suppress(psycopg.Error):
            told = (lambda: results[0]) if self.tells else (lambda: None)
            yield from _execute(Here(run, task), connection, self.op, steps, told)


def _noted(gen: Generator[Any, Any, PGresult], results: list[PGresult]) -> Generator[Any, Any, None]:
    results.append((yield from gen))


def wait(connection: psycopg.Connection[Any], gen: Any, *args: Any, **keywords: Any) -> Any:
    place = here()
    if place is None:
        if Active.run is not None:
            Active.stranger("a command to PostgreSQL")
        return _wait(connection, gen, *args, **keywords)
    status = connection.pgconn.transaction_status
    name = gen.__name__
    if name in _SILENT or (name in ("_commit_gen", "_rollback_gen") and status == TransactionStatus.IDLE):
        return _wait(connection, gen, *args, **keywords)
    server = place.run.servers[NAME]
    assert isinstance(server, PostgresServer)
    if place.run.ending:
        return _unwind(server, connection, gen, name)
    if error := beyond(gen, name):
        place.run.error = error
        raise psycopg.NotSupportedError(str(error))
    try:
        return _live(place, connection, gen, name, status == TransactionStatus.IDLE)
    except Halt:  # no thread may leave its session inside a transaction
        server.end_sessions([connection])
        gen.close()
        raise


def _live(place: Here, connection: psycopg.Connection[Any], gen: Any, name: str, idle: bool) -> Any:
    """A thread executes a command."""
    run, task = place.run, place.task
    sessions = task.worker.sessions.setdefault(NAME, {})
    sessions[connection] = task
    known: Any = connection
    known.explorer_isolation = connection.isolation_level
    number = list(sessions).index(connection)
    given = dict(gen.gi_frame.f_locals) if gen.gi_frame else {}
    source = given.get("self")
    op = describe(gen, name, idle)
    if name == "_execute_gen" and idle and not connection.autocommit:
        text = connection._get_tx_start_command()
        begin = SqlCommand(
            number, Op(NAME, text.decode(), text, local=True, reads=True), connection.isolation_level
        )
        begin.begins, begin.send = True, sending(text)
        run.arrives(task, begin)
        run.live(task, _begin(place, connection, begin.op, connection._start_query()))
    event = run.arrives(
        task, SqlCommand(number, op, connection.isolation_level, tells=hasattr(source, "pgresult"))
    )
    try:
        return run.live(task, _execute(place, connection, op, gen, lambda: getattr(source, "pgresult", None)))
    finally:
        event.send = event.send or how_to_send(connection, op, name, given)


def _unwind(server: PostgresServer, connection: psycopg.Connection[Any], gen: Any, name: str) -> Any:
    """The run is over: nothing passes but a client's own cleaning up."""
    server.end_sessions([connection])
    if name in ("_rollback_gen", "_exit_gen"):
        return _wait(connection, gen)
    gen.close()
    raise Halt


def _begin(place: Here, connection: psycopg.Connection[Any], op: Op, gen: Any) -> Standing:
    """psycopg begins a transaction by itself before the first command: a step of its own."""
    yield from place.run.standing(place.task, op)
    _wait(connection, gen)
    place.run.told(place.task, op, "")
    place.run.heard(place.task, b"")


def _execute(
    place: Here, connection: psycopg.Connection[Any], op: Op, gen: Any, result: Callable[[], PGresult | None]
) -> Standing:
    run, task = place.run, place.task
    server = run.servers[NAME]
    assert isinstance(server, PostgresServer)
    yield from run.standing(task, op)
    server.changed |= not op.reads  # a sequence moves on even in what is never committed
    if not op.local and connection.pgconn.transaction_status != TransactionStatus.IDLE:
        task.history.add(server.contents())  # what this transaction can see or has seen
    try:
        answer = yield from _drive(place, server, connection, gen)
    except psycopg.Error as raised:
        _after(server, connection, op)
        error = psycopg.errors.DeadlockDetected("deadlock detected") if task.victim else raised
        task.victim = False
        task.history.add(op.identity, type(error).__name__.encode())
        shown = f"{type(error).__name__}: {str(error).split(chr(10), 1)[0]}"
        run.told(task, op, shown)
        run.heard(task, ("error", shown))
        raise error from None
    _after(server, connection, op)
    reply, shown = reply_of(result())
    task.history.add(op.identity, reply)
    run.told(task, op, shown)
    run.heard(task, reply)
    if op.lose_reply:
        server.end_sessions([connection])
        server.cut(connection)
        run.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
        task.history.add(b"lost")
        run.heard(task, "lost")
        raise psycopg.OperationalError("server closed the connection unexpectedly")
    return answer


def _after(server: PostgresServer, connection: psycopg.Connection[Any], op: Op) -> None:
    server.ask_again()  # an error, too, frees what its transaction held
    server.note(connection, writes=not op.reads, calls=calls(op))
    if not op.reads and connection.pgconn.transaction_status == TransactionStatus.IDLE:
        server.touched()


def _drive(
    place: Here, server: PostgresServer, connection: psycopg.Connection[Any], gen: Generator[Any, Any, Any]
) -> Standing:
    """Run psycopg's own generator; when no reply comes, the server is asked whether the command is blocked.
    Where no other session is inside a transaction, or holds a lock, there is nothing that could block it."""
    socket = connection.pgconn.socket
    poller = select.poll()
    others = [s for w in place.run.workers for s in w.sessions.get(NAME, ()) if s is not connection]
    patience = NEWS_WITHIN_MS if server.holds(others) else None
    try:
        wants = next(gen)
        while True:
            poller.register(
                socket, (select.POLLIN if wants & 1 else 0) | (select.POLLOUT if wants & 2 else 0)
            )
            if events := poller.poll(patience):
                flags = events[0][1]
                ready = (1 if flags & ~select.POLLOUT else 0) | (2 if flags & select.POLLOUT else 0)
                wants = gen.send(ready)
                patience = patience and NEWS_WITHIN_MS
            elif place.task.victim or not server.is_blocked(connection):
                patience = 2 * (patience or NEWS_WITHIN_MS)  # a busy machine: it will come
            else:
                place.task.session = connection
                yield from place.run.blocked(place.task)
    except StopIteration as done:
        return done.value


def install(patches: Patches) -> None:
    patches.method(psycopg.Connection, "wait", wait)
    patches.method(psycopg.Connection, "connect", classmethod(connect))
    patches.everywhere(psycopg.connect, partial(connect, psycopg.Connection))
