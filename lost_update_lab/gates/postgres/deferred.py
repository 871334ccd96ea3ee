"""Deferred triggers look as COMMIT begins, and others can commit between that look and the commit:

    A: INSERT … 'Ann'; COMMIT: the trigger counts 1 guest               … commits: 2 guests, where 1 is allowed
    B:      INSERT … 'Bob'; COMMIT: the trigger counts 1 guest, commits

So a COMMIT for which a trigger waits is two steps: what SET CONSTRAINTS does, then the commit itself. If the trigger
refuses, the transaction is rolled back, and the worker hears the error as that of its COMMIT.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import psycopg

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.postgres.command import PostgresCommand
from lost_update_lab.gates.postgres.describe import sending
from lost_update_lab.gates.postgres.step import execute
from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.run import Run
from lost_update_lab.servers.postgres.server import POSTGRES

LOOKS = b"SET CONSTRAINTS ALL IMMEDIATE /* COMMIT begins */"
_COMMITS = re.compile(r"\s*(?:COMMIT|END)\b", re.IGNORECASE)
_LATER = re.compile(r";\s*(?:COMMIT|END)\b", re.IGNORECASE)


def commits_inside(text: str) -> bool:
    """Is there a COMMIT behind other statements of this text?"""
    return bool(_LATER.search(text.partition(" ← ")[0]))


def waits_for(connection: Any, op: Op) -> bool:
    """Is this the COMMIT for which a trigger waits?"""
    return bool(connection.explorer_deferred and _COMMITS.match(op.text))


def looks(
    run: Run, task: Task, connection: Any, name: tuple[int, int], alone: bool = False
) -> Generator[None, None, psycopg.Error | None]:
    """Let the deferred triggers look. Returns the error with which one of them refused."""
    op = Op(POSTGRES, LOOKS.decode(), LOOKS, alone=alone)
    run.arrives(task, PostgresCommand(name, op, connection.explorer_isolation, send=sending(LOOKS)))
    try:
        yield from execute(run, task, connection, op, driver.command(connection, LOOKS), None)
    except psycopg.Error as error:
        return error
    return None
