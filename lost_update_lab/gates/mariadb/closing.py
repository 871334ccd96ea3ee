"""What MariaDB does when a session ends. Others see it, so it is done step by step, as a client could ask for it.

    A: GET_LOCK('drain', 0)   SELECT job …: none left                               close: the name is free
    B:                                                  INSERT job   GET_LOCK: 0, "somebody else drains"

The server rolls back first, and then lets go of tables, and of names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pymysql

from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.gates.mariadb.describe import describe
from lost_update_lab.gates.mariadb.step import MariadbCommand, execute, server_of
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.runs.run import Run
from lost_update_lab.servers.mariadb.server import MARIADB
from lost_update_lab.servers.mariadb.session import session_of

ROLLBACK = "ROLLBACK"
FREES_TABLES, FREES_NAMES = "UNLOCK TABLES /* close() */", "SELECT RELEASE_ALL_LOCKS() /* close() */"


def sent_by_the_end(connection: Any) -> Iterator[tuple[str, str]]:
    """What does the same as the end of the session: PyMySQL's method, and what it sends, one after the other."""
    if _can_be_asked(connection) and driver.inside(connection):
        yield driver.ROLLBACK, ROLLBACK
    if _can_be_asked(connection) and session_of(connection).tables:
        yield driver.QUERY, FREES_TABLES
    if _can_be_asked(connection) and session_of(connection).keeps:
        yield driver.QUERY, FREES_NAMES


def _can_be_asked(connection: Any) -> bool:
    """A command that is under way, of another thread, ends with its session."""
    known = hasattr(connection, "explorer_session")
    return known and driver.is_open(connection) and not session_of(connection).busy


def ends_by_itself(run: Run, task: Task, connection: Any) -> None:
    """The client of this task goes on at once, and the session ends at some time."""
    if not any(sent_by_the_end(connection)):
        connection.close()
        return
    left = run.new_unheard(task)
    task.worker.sessions[MARIADB][connection] = left
    left.steps = _closes(run, left, connection)
    next(left.steps)


def _closes(run: Run, task: Task, connection: Any) -> Standing:
    yield from session_ends(run, task, connection)
    driver.close(connection)


def session_ends(run: Run, task: Task, connection: Any) -> Standing:
    """The server ends a session whose client is gone."""
    session = session_of(connection)
    with suppress(pymysql.MySQLError):
        for name, text in sent_by_the_end(connection):
            op = describe(text, driver.inside(connection))
            commits = driver.commits_by_itself(connection)
            yield from execute(
                run, task, connection, MariadbCommand(session.who[1:], op, name, text, commits)
            )
    server_of(run).end_sessions([connection])
