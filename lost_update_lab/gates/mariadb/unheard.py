"""PyMySQL reads no longer (`read_timeout`), and closes the connection. The server goes on with what it was sent.

A command that waits for a row waits on, and is executed when it has it: in autocommit, that is committed. Only then
does the server learn that the client is gone, and roll back what is not. From a wait for a name the server looks up
every second: it gives up when it finds the client gone. (Both were measured on MariaDB 10.11.)
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pymysql

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.gates.mariadb.closing import session_ends
from lost_update_lab.gates.mariadb.step import LOST_CONNECTION, LOST_IT, MariadbCommand, execute
from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending, refusals
from lost_update_lab.servers.mariadb.server import MARIADB
from lost_update_lab.servers.mariadb.session import session_of

COMMITS_ALONE = Op(MARIADB, "COMMIT", b"COMMIT", alone=True)


def leave(run: Run, task: Task, connection: Any, command: MariadbCommand) -> pymysql.OperationalError:
    """The client of this task goes on, and its session without it. Returns what the client hears."""
    session, left = session_of(connection), run.new_unheard(task)
    assert session.reads is not None
    gone = driver.hand_over(connection, session.reads)
    session.left_by, session.reads, session.late = (connection, session.reads), None, ""
    used = task.uses[MARIADB]
    used[used.index(connection)] = gone
    del task.worker.sessions[MARIADB][connection]
    task.worker.sessions[MARIADB][gone] = left
    left.op, left.steps = command.op, _goes_on(run, left, gone, command)
    before = [each.number for each in task.worker.tasks if each.unheard and each is not left]
    left.after = max(before, default=None)  # of one that has ended, nobody was told
    try:
        next(left.steps)
    except StopIteration:
        pending.end(run, left)
    if left in run.waiting_line:
        run.waiting_line.remove(left)
        run.waiting_line.insert(session.place, left)
    task.history.is_out(session.who)
    return _hears(run, task, command.op)


def _hears(run: Run, task: Task, op: Op) -> pymysql.OperationalError:
    error = pymysql.OperationalError(LOST_CONNECTION, f"{LOST_IT} (timed out)")
    told = f"OperationalError: {LOST_CONNECTION}, {error.args[1]}"
    task.history.add(op.identity, told.encode())
    refusals.note(run, task)
    pending.tell(run, task, op, told)
    pending.hear(run, task, "read timed out")
    return error


def _goes_on(run: Run, task: Task, connection: Any, command: MariadbCommand) -> Standing:
    with suppress(pymysql.MySQLError):
        yield from execute(run, task, connection, command, waits=True)
        if command.op.alone:
            commit = MariadbCommand(command.name, COMMITS_ALONE, driver.COMMIT, "COMMIT", command.commits)
            yield from execute(run, task, connection, commit)
    yield from session_ends(run, task, connection)
    client = session_of(connection).left_by
    if client and driver.needs_no_session(client[0]):
        driver.close(connection)
