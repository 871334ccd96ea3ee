"""A command that is a transaction by itself is three steps: BEGIN, the command, COMMIT. And psycopg's own BEGIN."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.postgres import deferred
from lost_update_lab.gates.postgres.command import PostgresCommand
from lost_update_lab.gates.postgres.describe import Send, sending
from lost_update_lab.gates.postgres.step import begin, execute
from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import ONE_BY_ONE, Broken
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.runs.run import Run
from lost_update_lab.servers.postgres.server import POSTGRES
from lost_update_lab.telling.narrative import shortened

COMMITS_INSIDE = "a procedure commits inside, and no schedule comes between its commands"


class Sends(NamedTuple):
    """What is under way on a connection: whose it is, and how to send it, if that is known. `alone`: as in Op."""

    task: Task
    send: Callable[[], Send | None]
    alone: bool = False


def looks(
    run: Run, task: Task, connection: Any, name: tuple[int, int], alone: bool = False
) -> Generator[None, None, psycopg.Error | None]:
    connection.explorer_sends = Sends(task, lambda: sending(deferred.LOOKS))
    return (yield from deferred.looks(run, task, connection, name, alone))


def by_itself(
    run: Run, task: Task, connection: Any, name: tuple[int, int], op: Op, steps: Standing
) -> Standing:
    """A command that is a transaction by itself."""
    try:
        found = yield from steps
        if connection.explorer_deferred:
            refused = yield from looks(run, task, connection, name, alone=True)
            if refused:
                raise refused
        connection.explorer_sends = Sends(task, lambda: sending(b"COMMIT"))
        yield from _ends(run, task, connection, name, "COMMIT")
        return found
    except psycopg.Error as error:
        if not connection.closed and connection.pgconn.transaction_status != TransactionStatus.IDLE:
            yield from _ends(run, task, connection, name, "ROLLBACK")
        if isinstance(error, psycopg.errors.InvalidTransactionTermination):
            run.error = Broken(f"{COMMITS_INSIDE} ({shortened(op.text, 80)})", ONE_BY_ONE)
        raise


def begins(
    run: Run, task: Task, connection: Any, name: tuple[int, int], text: bytes, alone: bool
) -> Standing:
    """Begin a transaction, as psycopg does before its first command. `alone`: it has only one (Op)."""
    connection.explorer_sends = Sends(task, lambda: None)
    op = Op(POSTGRES, text.decode(), text, local=True, reads=True, alone=alone, dates=not alone)
    begins = PostgresCommand(name, op, connection.explorer_isolation, begins=True, send=sending(text))
    run.arrives(task, begins)
    yield from begin(run, task, connection, op, driver.command(connection, text))


def _ends(run: Run, task: Task, connection: Any, name: tuple[int, int], text: str) -> Standing:
    """End the transaction that a command is by itself. After an error nobody can come in between."""
    undone = text == "ROLLBACK"
    op = Op(POSTGRES, text, text.encode(), local=undone, reads=undone, alone=True)
    run.arrives(task, PostgresCommand(name, op, connection.explorer_isolation, send=sending(op.identity)))
    yield from execute(run, task, connection, op, driver.command(connection, op.identity), None)
