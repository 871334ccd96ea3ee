"""A stop and a worker's report at the same moment: whoever comes second waits for the row, and looks again."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction

from ledger.imports import apply, chunks
from ledger.imports.stop import stop
from ledger.imports.upload import start_import
from ledger.models import ImportChunk, ImportLine, ImportRun
from tests.ledger.test_imports import csv, new_book, states

pytestmark = pytest.mark.usefixtures("committed_db")


def session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def somebody_waits_for(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND %s = ANY (pg_blocking_pids(pid))", [pid]
        )
        return bool(cursor.fetchone()[0])


def while_first_is_uncommitted(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Do `first`, let `second` run into its rows, commit. Returns what came of `second`."""

    def in_a_session_of_its_own() -> Any:
        try:
            return second()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            first()
            mine = session()
            done: Future[Any] = thread.submit(in_a_session_of_its_own)
            until = time.monotonic() + 20
            while not somebody_waits_for(mine):
                assert not done.done(), f"it did not wait: {done.result()}"
                assert time.monotonic() < until
        return done.result(20)


@pytest.fixture
def work() -> tuple[ImportRun, ImportChunk, list[ImportLine]]:
    """A run of two lines, claimed by a worker that has posted the first and has not said so."""
    run = start_import(new_book(), [csv("acme,A1,1,r1", "acme,A1,2,r2")], scan=False)
    chunk = chunks.claim(run.pk, 1)
    assert chunk
    lines = list(chunk.lines.order_by("number"))
    apply._post(chunk, lines[:1], lines[0].key, {lines[0].account: lines[0].amount or 0})
    lines[1].problem = "busy"
    return run, chunk, lines


def test_a_line_that_is_being_stopped_does_not_wait_again(work):
    run, chunk, (_, busy) = work
    while_first_is_uncommitted(lambda: stop(run), lambda: apply.report(chunk, [busy]))
    assert states(run) == [(2, "stopped"), (3, "stopped")]


def test_a_line_that_is_being_posted_is_not_stopped(work):
    run, chunk, (posted, _) = work
    assert while_first_is_uncommitted(lambda: apply.report(chunk, [posted]), lambda: stop(run)) == 1
    assert states(run) == [(2, "posted"), (3, "stopped")]
