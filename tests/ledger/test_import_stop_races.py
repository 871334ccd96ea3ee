"""A stop and a worker's report at the same moment: the second one waits for the row, and looks again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction

from ledger.imports import apply, chunks
from ledger.imports.stop import stop
from ledger.imports.upload import start_import
from ledger.models import ImportChunk, ImportLine, ImportRun
from tests.ledger.race.sessions import session_of, waiting_for
from tests.ledger.test_imports import csv, new_book, states
from tests.locks.actor import eventually

pytestmark = pytest.mark.usefixtures("committed_db")


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
            done: Future[Any] = thread.submit(in_a_session_of_its_own)
            eventually(lambda: waiting_for(session_of(connection)) or done.done(), "the second one waits")
            assert not done.done(), f"it did not wait: {done.result()}"
        return done.result(60)


@pytest.fixture
def work() -> tuple[ImportRun, ImportChunk, list[ImportLine]]:
    """A run of two lines, claimed by a worker that has posted the first and not yet reported it."""
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
