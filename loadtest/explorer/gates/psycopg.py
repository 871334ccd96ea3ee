"""The gate of psycopg: everything that a Connection sends passes its `wait`. Django's ORM goes this way too."""

from __future__ import annotations

import gc
import re
import select
from collections.abc import Generator
from functools import partial
from typing import Any

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

from loadtest.explorer.gates.here import Active, Here, here
from loadtest.explorer.gates.patch import Patches
from loadtest.explorer.ops import Op
from loadtest.explorer.servers.postgres import NAME, PostgresServer
from loadtest.explorer.tasks import Halt

_wait = psycopg.Connection.wait
_connect: Any = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]
_made: set[int] = set()
#: how long a reply may take before the server is asked whether the command is blocked
NEWS_WITHIN_MS = 1

_LOCAL = re.compile(r"\s*(BEGIN|SAVEPOINT|RELEASE|SET)\b", re.IGNORECASE)
_SILENT = ("_set_autocommit_gen", "_set_isolation_level_gen", "_set_read_only_gen", "_set_deferrable_gen")
_WRITE = re.compile(r"\s*(INSERT|UPDATE|DELETE|COMMIT|ROLLBACK)\b", re.IGNORECASE)
_PLAIN_SELECT = re.compile(r"\s*SELECT\b(?!.*\bFOR\b)", re.IGNORECASE | re.DOTALL)
_CALL = re.compile(r"\b(?!(?:IN|AND|OR|VALUES|AS|ON|WHERE)\b)\w+\s*\(", re.IGNORECASE)


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
    place.task.worker.sessions.setdefault(NAME, {})[connection] = place.task
    cursor = gen.gi_frame.f_locals.get("self") if gen.gi_frame else None
    op = _describe(gen, name, status == TransactionStatus.IDLE)
    try:
        if name == "_execute_gen" and not connection.autocommit and status == TransactionStatus.IDLE:
            _begin(place, connection)
        place.run.gate(place.task, op)
    except Halt:  # the run is over: no thread may leave its session inside a transaction
        server.end_sessions([connection])
        gen.close()
        raise
    return _execute(place, server, connection, gen, op, cursor)


def _unwind(server: PostgresServer, connection: psycopg.Connection[Any], gen: Any, name: str) -> Any:
    """The run is over: nothing passes but a client's own cleaning up."""
    server.end_sessions([connection])
    if name in ("_rollback_gen", "_exit_gen"):
        return _wait(connection, gen)
    gen.close()
    raise Halt


def _begin(place: Here, connection: psycopg.Connection[Any]) -> None:
    """psycopg begins a transaction by itself before the first command: a step of its own."""
    text = connection._get_tx_start_command()
    op = Op(NAME, text.decode(), text, local=True, reads=True)
    place.run.gate(place.task, op)
    _wait(connection, connection._start_query())
    place.run.told(place.task, op, "")


def _describe(gen: Any, name: str, idle: bool) -> Op:
    if name == "_commit_gen":
        return Op(NAME, "COMMIT", b"COMMIT")
    if name == "_rollback_gen":
        return Op(NAME, "ROLLBACK", b"ROLLBACK")
    values = gen.gi_frame.f_locals if gen.gi_frame else {}
    if name in ("_enter_gen", "_exit_gen"):  # `with connection.transaction()`
        return _transaction(values, idle, entering=name == "_enter_gen")
    query, params = values.get("query", name.strip("_").removesuffix("_gen")), values.get("params")
    text = query.decode() if isinstance(query, bytes) else str(query)
    local = bool(_LOCAL.match(text))
    reads = local or bool(_PLAIN_SELECT.match(text) and not _CALL.search(text))
    shown = text if params is None else f"{text} ← {_shown(params)}"
    return Op(NAME, shown, repr((text, params)).encode(), local, reads)


def _transaction(values: dict[str, Any], idle: bool, entering: bool) -> Op:
    outer = idle if entering else values["self"]._outer_transaction
    failed = values.get("exc_type") is not None
    if entering:
        text = "BEGIN" if outer else "SAVEPOINT"
    elif failed:
        text = "ROLLBACK" if outer else "ROLLBACK TO"
    else:
        text = "COMMIT" if outer else "RELEASE"
    local = entering or (not outer and not failed)
    return Op(NAME, text, text.encode(), local, reads=local)


def _shown(params: Any) -> str:
    values = params.values() if isinstance(params, dict) else params
    return ", ".join(str(value) for value in values)


def _execute(
    place: Here, server: PostgresServer, connection: psycopg.Connection[Any], gen: Any, op: Op, cursor: Any
) -> Any:
    run, task = place.run, place.task
    server.changed |= not op.reads  # a sequence moves on even in what is never committed
    if not op.local and connection.pgconn.transaction_status != TransactionStatus.IDLE:
        task.history.add(server.contents())  # what this transaction can see or has seen
    try:
        result = _drive(place, server, connection, gen)
    except psycopg.Error as raised:
        _after(server, connection, op)
        error = psycopg.errors.DeadlockDetected("deadlock detected") if task.victim else raised
        task.victim = False
        task.history.add(op.identity, type(error).__name__.encode())
        run.told(task, op, f"{type(error).__name__}: {str(error).split(chr(10), 1)[0]}")
        raise error from None
    _after(server, connection, op)
    reply, shown = _reply(cursor)
    task.history.add(op.identity, reply)
    run.told(task, op, shown)
    if op.lose_reply:
        server.end_sessions([connection])
        server.cut(connection)
        run.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
        task.history.add(b"lost")
        raise psycopg.OperationalError("server closed the connection unexpectedly")
    return result


def _after(server: PostgresServer, connection: psycopg.Connection[Any], op: Op) -> None:
    server.ask_again()  # an error, too, frees what its transaction held
    server.note(connection, writes=not op.reads, calls=not op.reads and not _WRITE.match(op.text))
    if not op.reads and connection.pgconn.transaction_status == TransactionStatus.IDLE:
        server.touched()


def _drive(
    place: Here, server: PostgresServer, connection: psycopg.Connection[Any], gen: Generator[Any, Any, Any]
) -> Any:
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
                place.run.blocked(place.task)
    except StopIteration as done:
        return done.value
    except Halt:
        gen.close()
        raise


def _reply(cursor: Any) -> tuple[bytes, str]:
    """What came back, exactly and for people."""
    result = getattr(cursor, "pgresult", None)
    if result is None:
        return b"", ""
    if result.status != ExecStatus.TUPLES_OK:
        tag = (result.command_status or b"").decode()
        return tag.encode(), tag
    rows = [[result.get_value(r, c) for c in range(result.nfields)] for r in range(result.ntuples)]
    shown = "; ".join(
        ", ".join("NULL" if v is None else v.decode(errors="replace") for v in row) for row in rows
    )
    return repr(rows).encode(), shown or "no row"


def connect(cls: type[psycopg.Connection[Any]], *args: Any, **keywords: Any) -> psycopg.Connection[Any]:
    connection: psycopg.Connection[Any] = _connect(cls, *args, **keywords)
    _made.add(connection.info.backend_pid)
    return connection


def made(look: bool = False) -> set[int]:
    """The process ids of all sessions that psycopg has in this process, or had since the gates were put up;
    `look` for those that were there before."""
    for thing in gc.get_objects() if look else ():
        # of its type: isinstance() also asks the thing, and a lazy one of Django would go and fetch what it stands for
        if issubclass(type(thing), psycopg.Connection) and not thing.closed:
            _made.add(thing.info.backend_pid)
    return _made


def install(patches: Patches) -> None:
    patches.method(psycopg.Connection, "wait", wait)
    patches.method(psycopg.Connection, "connect", classmethod(connect))
    patches.everywhere(psycopg.connect, partial(connect, psycopg.Connection))
