"""A worker is killed with SIGKILL in the middle of a chunk, and another one ends the work: each line once.

The moment is no guess: the test holds the row of one account, and kills the worker when PostgreSQL says that the
worker's session waits for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db.models import Count
from django.db.models.functions import Now

from ledger.books import open_book
from ledger.imports.upload import Upload, start_import
from ledger.models import Account, Book, Entry, ImportChunk, ImportLine, ImportRun
from ledger.reconcile_stored import books_of
from loadtest.servers.background import BackgroundWorker
from tests.ledger.race.sessions import waiting_for

pytestmark = pytest.mark.usefixtures("empty_queue")
LINES = 30
GATE = 10  # the line at which the first worker is killed


def within(seconds: float, what: str, ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def uploads(posted_by_gate: str) -> list[Upload]:
    lines = [f"acme,{'GATE' if n == GATE else 'A1'},{n},r{n}" for n in range(1, LINES + 1)]
    return [Upload(posted_by_gate, "\n".join(["seller,account,amount,reference", *lines]).encode())]


def states(run: ImportRun) -> dict[str, int]:
    lines = ImportLine.objects.filter(batch__run=run).order_by().values_list("state")
    return dict(lines.annotate(count=Count("pk")))


def posted(book: Book) -> int:
    return Entry.objects.filter(book=book).count()


@pytest.mark.deep
@pytest.mark.parametrize("all_or_nothing", [False, True], ids=["line by line", "all or nothing"])
def test_a_killed_workers_lines_are_posted_once_by_another(monkeypatch, all_or_nothing):
    monkeypatch.setenv("IMPORT_LEASE", "60")
    book = open_book("select-for-update", [("A1", 0, None), ("GATE", 0, None)], values={"think": [0, 0]})
    run = start_import(book, uploads("acme.csv"), workers=1, scan=False, all_or_nothing=all_or_nothing)
    before_gate = 0 if all_or_nothing else GATE - 1

    with psycopg.connect(os.environ["DATABASE_URL"]) as gate:
        row = Account.objects.get(book=book, number="GATE")
        gate.execute("SELECT FROM ledger_account WHERE id = %s FOR UPDATE", [row.pk])
        with BackgroundWorker(number=1) as worker:
            within(60, "the worker stands at the gate", lambda: waiting_for(gate.info.backend_pid))
            killed = f":{worker.pid}:"
            worker.kill()
        assert posted(book) == before_gate
        # the control: without another worker the work stays undone, and is not shown as done
        run.refresh_from_db()
        assert not run.finished
        assert states(run).get("waiting", 0) >= LINES - before_gate

    ImportChunk.objects.filter(batch__run=run).update(lease_until=Now())  # the killed worker's lease ends
    with BackgroundWorker(number=2):
        within(60, "the import is finished", lambda: ImportRun.objects.get(pk=run.pk).finished)

    assert states(run) == {"posted": LINES}
    keys = Entry.objects.filter(book=book).values_list("key", "account")
    assert len(keys) == len(set(keys)) == (2 if all_or_nothing else LINES)
    workers = set(Entry.objects.filter(book=book).values_list("worker", flat=True))
    assert any(killed in each for each in workers) == (not all_or_nothing)
    assert any(killed not in each for each in workers)
    books = books_of(book)
    assert (books.final, books.expected) == (LINES * (LINES + 1) // 2,) * 2
    assert books.lost_updates == books.created_updates == 0
    assert run.batches.get().chunks.get().token == 2
