"""An import that is stopped: what was posted stays, what is left is named, and it can be tried again."""

from __future__ import annotations

import pytest

from ledger.imports import apply, chunks
from ledger.imports.jobs import wake
from ledger.imports.operations import books_with_imports
from ledger.imports.progress import progress
from ledger.imports.retry import try_again
from ledger.imports.scan import start_round
from ledger.imports.stop import stop
from ledger.imports.upload import start_import
from ledger.models import ImportLine, ImportRun
from tests.ledger.test_imports import balances, csv, drain, new_book, states

pytestmark = pytest.mark.usefixtures("committed_db")


def test_what_is_left_is_named_and_nobody_takes_it_up(settings):
    settings.IMPORT_CHUNK_LINES = 1
    book = new_book()
    run = start_import(book, [csv("acme,A1,1,r1", "acme,A1,2,r2", "acme,A2,4,r3")])
    chunk = chunks.claim(run.pk, 1)
    apply.work(chunk)
    chunks.give_back(chunk)
    assert stop(run) == 2
    run.refresh_from_db()
    assert run.finished
    assert states(run) == [(2, "posted"), (3, "stopped"), (4, "stopped")]
    assert (run.word, progress(run).files[0].word, progress(run).done) == (
        "stopped",
        ("stopped", "stopped"),
        1,
    )
    assert chunks.claim(run.pk, 1) is None
    assert not start_round(run)
    assert wake(run) == 0
    assert stop(run) == 0
    assert balances(book) == [101, 100]


def test_a_worker_that_was_at_it_may_say_that_it_posted_and_nothing_else():
    book = new_book()
    run = start_import(book, [csv("acme,A1,1,r1", "acme,A1,2,r2")], scan=False)
    chunk = chunks.claim(run.pk, 1)
    first, second = chunk.lines.order_by("number")
    apply._post(chunk, [first], first.key, {first.account: first.amount})
    assert stop(run) == 2
    second.state = ImportLine.State.BUSY
    apply.report(chunk, [first, second])
    chunks.give_back(chunk)
    assert not chunks.renew(chunk)
    assert states(run) == [(2, "posted"), (3, "stopped")]
    books = books_with_imports(book)
    assert (books.acknowledged, books.indeterminate_operations, books.balanced) == (1, 0, True)


def test_it_can_be_tried_again():
    book = new_book()
    run = start_import(book, [csv("acme,A1,1,r1", "acme,A2,2,r2")], scan=False)
    assert stop(run) == 2
    assert try_again(run) == 2
    assert ImportRun.objects.get(pk=run.pk).word == "running"
    drain(run)
    assert states(run) == [(2, "posted"), (3, "posted")]
    assert balances(book) == [101, 102]
