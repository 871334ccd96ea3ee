"""A paused worker's request may still be applied: its outcome is in doubt, whatever the next worker's answer."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from django.db import connections
from django.db.models.functions import Now

from ledger.books import open_book, post
from ledger.imports import apply, chunks
from ledger.imports.operations import books_with_imports
from ledger.imports.retry import try_again
from ledger.imports.stop import stop
from ledger.imports.upload import start_import
from ledger.models import Account, Book, ImportChunk, ImportLine, ImportRun
from ledger.posting import Line, Posting, Refused
from ledger.reconcile_stored import books_of
from ledger.resources import redis_client
from ledger.stores import store_of
from locks import LOCKS, build
from tests.ledger.test_import_sigkill import within
from tests.ledger.test_imports import balances, csv, drain, imported, new_book, states

pytestmark = pytest.mark.usefixtures("committed_db")
FILE = csv("acme,A1,10,r1", "acme,A2,-150,r2")  # A2 has 100
CORRECTED = csv("acme,A1,10,r1", "acme,A2,-50,r2", name="corrected.csv")


def of(run: ImportRun) -> set[str]:
    return {state for _, state in states(run)}


def claimed_and_paused(run: ImportRun) -> tuple[ImportChunk, list[ImportLine]]:
    """A worker has claimed the run's only chunk and read its lines; then its lease ends."""
    chunk = chunks.claim(run.pk, 1)
    assert chunk
    lines = list(chunk.lines.order_by("number"))
    ImportChunk.objects.filter(pk=chunk.pk).update(lease_until=Now())
    return chunk, lines


def test_a_file_that_may_yet_be_applied_keeps_its_references():
    book = new_book(floor=0)
    run = start_import(book, [FILE], all_or_nothing=True, scan=False)
    paused, lines = claimed_and_paused(run)
    drain(run)  # another worker hears that the business refuses
    assert of(run) == {"unknown"}
    assert "an earlier request may yet be applied" in run.batches.get().lines.first().problem
    assert ImportRun.objects.get(pk=run.pk).finished
    assert imported(book, [CORRECTED], all_or_nothing=True).batches.get().state == "rejected"
    post(book, Posting("deposit", (Line("A2", 100),)))
    apply._post_together(paused, lines)  # the first one wakes up
    apply.report(paused, lines)
    assert of(run) == {"posted"}
    assert balances(book) == [110, 50]
    assert books_of(book).right


def test_what_was_in_doubt_once_stays_so_until_it_is_posted():
    book = new_book("setnx", floor=0, poll=0.01, timeout=0.05)
    run = start_import(book, [FILE], all_or_nothing=True, scan=False)
    claimed_and_paused(run)
    with build(LOCKS["setnx"], f"{book.pk}:A1", redis=redis_client()):
        drain(run)
    assert of(run) == {"waiting"}  # busy, and free again: a claim that took nothing over
    ImportChunk.objects.filter(batch__run=run).update(not_before=Now())
    drain(run)
    assert of(run) == {"unknown"}
    post(book, Posting("deposit", (Line("A2", 100),)))
    assert try_again(run) == 2
    drain(run)
    assert of(run) == {"posted"}
    assert books_with_imports(book).right


def test_a_line_that_is_busy_to_the_end_after_a_paused_worker_is_in_doubt():
    book = new_book("setnx", poll=0.01, timeout=0.02)
    run = start_import(book, [csv("acme,A1,1,r1")], scan=False)
    claimed_and_paused(run)
    with build(LOCKS["setnx"], f"{book.pk}:A1", redis=redis_client()):
        for _ in range(apply.MAX_ATTEMPTS):
            ImportChunk.objects.filter(batch__run=run).update(not_before=Now())
            drain(run)
    assert of(run) == {"unknown"}


def test_an_error_and_then_a_refusal_is_in_doubt(monkeypatch):
    book = new_book(floor=0)
    run = start_import(book, [csv("acme,A2,-150,r2")], scan=False)

    def lost(*_: object) -> None:
        raise ConnectionError("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(apply, "post", lost)
        drain(run)
    assert of(run) == {"waiting"}
    ImportChunk.objects.filter(batch__run=run).update(not_before=Now())
    drain(run)
    assert of(run) == {"unknown"}


def test_what_was_being_asked_for_when_it_was_stopped_is_in_doubt(settings):
    settings.IMPORT_CHUNK_LINES = 1
    book = new_book(floor=0)
    run = start_import(book, [csv("acme,A1,-150,r1", "acme,A2,-150,r2")], scan=False)
    assert chunks.claim(run.pk, 1)
    assert stop(run) == 2
    assert try_again(run) == 2
    drain(run)
    assert states(run) == [(2, "unknown"), (3, "refused")]  # no worker had claimed the second


def test_a_key_that_is_another_postings_for_good_leaves_no_doubt():
    book = new_book()
    post(book, Posting("import/acme/r1", (Line("A1", 5),)))
    run = start_import(book, [csv("acme,A1,1,r1")], scan=False)
    claimed_and_paused(run)
    drain(run)
    assert of(run) == {"refused"}


def test_a_worker_that_waits_with_a_whole_file_keeps_its_claim(settings):
    settings.IMPORT_LEASE = 0.6
    book = new_book()
    run = start_import(book, [FILE], all_or_nothing=True, scan=False)
    chunk = chunks.claim(run.pk, 1)
    until = ImportChunk.objects.get(pk=chunk.pk).lease_until

    def work() -> bool:
        try:
            return apply.work(chunk)
        finally:
            connections.close_all()

    row = Account.objects.get(book=book, number="A2")
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(os.environ["DATABASE_URL"]) as other:
            other.execute("SELECT FROM ledger_account WHERE id = %s FOR UPDATE", [row.pk])
            done = pool.submit(work)
            renewed = ImportChunk.objects.filter(pk=chunk.pk, lease_until__gt=until)
            within(20, "the claim is renewed while the file waits for an account", renewed.exists)
            ended = other.execute(
                "SELECT clock_timestamp(), count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                ' WHERE query LIKE \'UPDATE "ledger_importchunk" SET "lease_until"%\''
            ).fetchone()
            assert ended[1] == 1
            later = ended[0] + timedelta(seconds=settings.IMPORT_LEASE)
            again = ImportChunk.objects.filter(pk=chunk.pk, lease_until__gt=later)
            within(20, "the claim is renewed though its session was ended", again.exists)
            assert not done.done()
        assert done.result(20) is False
    assert of(run) == {"posted"}
    assert not [each for each in threading.enumerate() if each.name.startswith("claim-")]


@pytest.mark.parametrize("strategy", ["redis-atomic", "select-for-update"])
def test_a_file_that_was_answered_before_a_new_worker_came_takes_no_key(strategy: str):
    """It was refused and reported, and the worker was killed before it gave the chunk back."""
    store = "redis" if strategy.startswith("redis") else "postgres"
    book = open_book(strategy, [("A1", 100, 0), ("A2", 100, 0)], store=store, values={"think": [0, 0]})
    run = start_import(book, [FILE], all_or_nothing=True, scan=False)
    apply.work(chunks.claim(run.pk, 1))
    ImportChunk.objects.filter(batch__run=run).update(lease_until=Now())
    drain(run)
    assert of(run) == {"refused"}
    assert store_of(book).find(run.batches.get().posting_key) is None
    post(book, Posting("deposit", (Line("A2", 100),)))
    assert try_again(run) == 2
    drain(run)
    assert of(run) == {"posted"}


@pytest.mark.parametrize("store", ["postgres", "redis"])
def test_a_posting_without_lines_is_refused(store: str):
    book: Book = open_book("no-lock", [("A1", 100, None)], store=store)
    with pytest.raises(Refused, match="no line"):
        post(book, Posting("empty", ()))
    assert store_of(book).find("empty") is None


def test_a_file_of_which_nothing_was_posted_can_be_tried_again():
    book = new_book(floor=0)
    first = imported(book, [FILE], all_or_nothing=True)
    again = imported(book, [FILE], all_or_nothing=True).batches.get()
    assert again.state == "duplicate"
    assert again.problem == (
        f"the same file was uploaded before ({first}, acme.csv), and no line of it is posted: press “Try again” there"
    )
