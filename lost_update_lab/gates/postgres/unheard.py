"""psycopg is cancelled again while it cancels a command (anyio does so at once): it closes the connection.

Nobody hears then what becomes of the command. The server executes it to its end, or cancels it, and only then learns
that the client is gone. A row lock that it waits for, it waits for on. What was not committed by then is rolled back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import ConnStatus, TransactionStatus

from lost_update_lab.gates.postgres.connections import cut
from lost_update_lab.gates.postgres.describe import fetched, sending, sent
from lost_update_lab.gates.postgres.step import execute
from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Standing, State, Task
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending
from lost_update_lab.servers.postgres import limits
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer

ENDS = Op(POSTGRES, "(the session ends: its client is gone)", b"the session ends")
COMMITS = Op(POSTGRES, "COMMIT", b"COMMIT")


class LeftSession:
    """A session whose client is gone, as the server sees it."""

    def __init__(self, connection: Any) -> None:
        known = {name: value for name, value in vars(connection).items() if name.startswith("explorer_")}
        vars(self).update(known)
        self.pgconn, self.explorer_gone = connection.pgconn, True
        self.info = psycopg.ConnectionInfo(self.pgconn)

    @property
    def closed(self) -> bool:
        return bool(self.pgconn.status == ConnStatus.BAD)


def leave(run: Run, task: Task, connection: Any) -> bool:
    """The coroutine of this task goes on, and its connection is closed. Returns whether it is known what follows."""
    op, under_way, in_line = task.op, getattr(connection, "explorer_sends", None), task in run.waiting_line
    waits = in_line or _server_of(run).looks.holds(connection)
    send = under_way.send() if under_way and not waits else None
    unknown = under_way and not (waits or send or (op and (op.local or op.text.startswith("ROLLBACK"))))
    if unknown or task.state is State.WAIT or limits.are_set(connection):
        return False
    left = run.new_unheard(task)
    session: Any = LeftSession(connection)
    connection.explorer_held = ()
    cut(connection)
    connection.explorer_cut = None  # it stays closed
    task.history.is_out(session.explorer_who)
    task.worker.sessions[POSTGRES][session] = left
    place = run.waiting_line.index(task) if in_line else 0
    gen = fetched(session.pgconn) if waits else sent(session.pgconn, send) if send else None
    left.steps = _goes_on(run, left, session, op, gen, waits)
    try:
        next(left.steps)
    except StopIteration:
        pending.end(run, left)
    if waits and left in run.waiting_line:
        run.waiting_line.remove(left)
        run.waiting_line.insert(place, left)
    return True


def _server_of(run: Run) -> PostgresServer:
    server = run.servers[POSTGRES]
    assert isinstance(server, PostgresServer)
    return server


def _goes_on(run: Run, task: Task, session: Any, op: Any, gen: Any, waits: bool) -> Standing:
    server = _server_of(run)
    if gen:
        task.op, task.canceling = op, True
        with suppress(psycopg.Error):
            yield from execute(run, task, session, op, gen, None, waits)
            if session.explorer_sends.alone:
                task.canceling, commit = True, sent(session.pgconn, sending(COMMITS.identity))
                yield from execute(run, task, session, COMMITS, commit, None)
    if session.pgconn.transaction_status != TransactionStatus.IDLE:
        yield from pending.standing(run, task, ENDS)
        pending.tell(run, task, ENDS, "")
    server.end_sessions([session])
