"""An import, worked off in this process: what is posted, what is reported, and that nothing is posted twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.db.models import F
from django.db.models.functions import Now
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.books import open_book
from ledger.imports import apply, chunks
from ledger.imports.operations import books_with_imports
from ledger.imports.retry import try_again
from ledger.imports.scan import start_round
from ledger.imports.upload import Upload, open_book_for, start_import
from ledger.models import Account, Book, Entry, ImportChunk, ImportLine, ImportRun
from ledger.reconcile_stored import books_of
from ledger.resources import redis_client
from locks import LOCKS, build

pytestmark = pytest.mark.usefixtures("committed_db")
HEADER = "seller,account,amount,reference\n"
FAST = {"think": [0, 0]}


def csv(*lines: str, name: str = "acme.csv") -> Upload:
    return Upload(name, (HEADER + "\n".join(lines)).encode())


def new_book(strategy: str = "select-for-update", floor: int | None = None, **values: object) -> Book:
    return open_book(strategy, [("A1", 100, floor), ("A2", 100, floor)], values={**FAST, **values})


def drain(run: ImportRun) -> None:
    """Work as the lanes 0 and 1 do, until nothing is left that may be claimed now."""
    for lane in (0, 1):
        while chunk := chunks.claim(run.pk, lane):
            chunks.give_back(chunk, later=0.5 if apply.work(chunk) else 0)


def imported(book: Book, uploads: Sequence[Upload], **options: object) -> ImportRun:
    run = start_import(book, uploads, **{"scan": False, **options})
    drain(run)
    run.refresh_from_db()
    return run


def states(run: ImportRun) -> list[tuple[int, str]]:
    return list(ImportLine.objects.filter(batch__run=run).values_list("number", "state"))


def balances(book: Book) -> list[int]:
    return list(Account.objects.filter(book=book).values_list("balance", flat=True))


def test_good_lines_are_posted_and_bad_ones_named():
    book = new_book()
    run = imported(book, [csv("acme,A1,10,r1", "acme,A9,1,r2", "acme,A1,x,r3", "acme,A2,-5,r4")])
    assert states(run) == [(2, "posted"), (3, "bad"), (4, "bad"), (5, "posted")]
    assert balances(book) == [110, 95]
    assert run.finished
    unknown = ImportLine.objects.get(batch__run=run, number=3)
    assert unknown.problem == "no account A9 in this book"
    posted = ImportLine.objects.get(batch__run=run, number=2)
    assert Entry.objects.get(pk=posted.entry).key == "import/acme/r1"


@pytest.mark.parametrize("strategy", ["segmented-balance", "skip-locked"])
def test_a_file_names_accounts_and_not_the_rows_that_they_are_kept_in(strategy):
    book = new_book(strategy)
    run = start_import(book, [csv("acme,A1,10,r1", "acme,A9,1,r2", "acme,A2,-5,r3")])
    assert start_round(run)
    drain(run)
    assert sorted(states(run)) == [(1, "posted"), (2, "posted"), (2, "posted"), (3, "bad"), (4, "posted")]
    assert not ImportLine.objects.filter(batch__run=run, state="posted", entry=None).exists()
    assert sum(balances(book)) == 200 + 10 - 5 - 2  # the scan charges each account 1
    assert books_with_imports(book).right


def test_all_or_nothing_posts_nothing_of_a_file_with_one_bad_line():
    book = new_book()
    files = [csv("acme,A1,10,r1", "acme,A9,1,r2"), csv("bolt,A1,7,r1", "bolt,A1,2,r2", name="bolt.csv")]
    run = imported(book, files, all_or_nothing=True)
    spoiled, whole = run.batches.order_by("pk")
    assert spoiled.state == "rejected"
    assert "1 of 2 lines are not right. line 3: no account A9" in spoiled.problem
    assert whole.state == "finished"
    assert balances(book) == [109, 100]
    assert Entry.objects.filter(book=book).count() == 1  # the file is one posting: 7 + 2


def test_all_or_nothing_refused_by_the_business_leaves_nothing_behind():
    book = new_book(floor=0)
    run = imported(book, [csv("acme,A1,10,r1", "acme,A2,-500,r2")], all_or_nothing=True)
    assert {state for _, state in states(run)} == {"refused"}
    assert balances(book) == [100, 100]
    assert not Entry.objects.filter(book=book).exists()


def test_the_same_file_twice_posts_nothing_twice():
    book = new_book()
    imported(book, [csv("acme,A1,10,r1")])
    run = imported(book, [csv("acme,A1,10,r1", name="renamed.csv")])
    assert run.finished
    (batch,) = run.batches.all()
    assert batch.state == "duplicate"
    assert balances(book) == [110, 100]


def test_a_line_that_came_in_another_file_is_known_and_another_request_is_bad():
    book = new_book()
    imported(book, [csv("acme,A1,10,r1", "acme,A1,20,r2")])
    run = imported(book, [csv("acme,A1,10,r1", "acme,A1,21,r2", "acme,A2,1,r3", name="more.csv")])
    assert states(run) == [(2, "known"), (3, "bad"), (4, "posted")]
    assert balances(book) == [130, 101]


def test_the_same_file_in_another_book_is_another_import():
    for _ in range(2):
        book = new_book()
        imported(book, [csv("acme,A1,10,r1")])
        assert balances(book) == [110, 100]


def test_a_refused_line_can_be_tried_again():
    book = new_book(floor=0)
    run = imported(book, [csv("acme,A1,-150,r1", "acme,A2,-50,r2")])
    assert states(run) == [(2, "refused"), (3, "posted")]
    assert run.finished
    imported(book, [csv("bank,A1,100,r1")])
    assert try_again(run) == 1
    drain(run)
    assert states(run) == [(2, "posted"), (3, "posted")]
    assert balances(book) == [50, 50]


def test_nothing_is_tried_again_while_the_run_works(settings):
    settings.IMPORT_CHUNK_LINES = 1
    book = new_book(floor=0)
    run = start_import(book, [csv("acme,A1,-150,r1", "acme,A2,-50,r2")], scan=False)
    chunk = chunks.claim(run.pk, 1)
    apply.work(chunk)
    chunks.give_back(chunk)
    assert states(run) == [(2, "refused"), (3, "waiting")]
    assert try_again(run) == 0
    drain(run)
    assert try_again(run) == 1


def test_all_or_nothing_is_tried_again_whole_or_not_at_all():
    book = new_book(floor=0)
    whole = imported(book, [csv("acme,A1,10,r1", "acme,A2,-500,r2")], all_or_nothing=True)
    imported(book, [csv("acme,A1,10,r1", name="other.csv"), csv("bank,A2,1000,r1")])
    assert try_again(whole) == 0
    assert {state for _, state in states(whole)} == {"refused"}
    assert balances(book) == [110, 1100]


def test_a_claim_lasts_as_long_as_one_posting_of_a_patient_book_may_take(settings):
    run = start_import(new_book(timeout=100), [csv("acme,A1,1,r1")], scan=False)
    chunk = chunks.claim(run.pk, 1)
    late = Now() + timedelta(seconds=settings.IMPORT_LEASE + 50)
    assert ImportChunk.objects.filter(pk=chunk.pk, lease_until__gt=late).exists()


def test_lines_of_a_busy_account_wait_and_the_others_go_on():
    book = new_book("setnx", poll=0.01, timeout=0.05)
    run = start_import(book, [csv("acme,A1,1,r1", "acme,A2,1,r2")], scan=False)
    with build(LOCKS["setnx"], f"{book.pk}:A1", redis=redis_client()):
        drain(run)
    assert states(run) == [(2, "waiting"), (3, "posted")]
    ImportChunk.objects.filter(batch__run=run).update(not_before=Now())
    drain(run)
    assert states(run) == [(2, "posted"), (3, "posted")]


def test_a_line_that_stays_busy_is_given_up_and_reported_as_busy():
    book = new_book("setnx", poll=0.01, timeout=0.02)
    run = start_import(book, [csv("acme,A1,1,r1")], scan=False)
    with build(LOCKS["setnx"], f"{book.pk}:A1", redis=redis_client()):
        for _ in range(apply.MAX_ATTEMPTS):
            ImportChunk.objects.filter(batch__run=run).update(not_before=Now())
            drain(run)
    assert states(run) == [(2, "busy")]
    run.refresh_from_db()
    assert run.finished
    assert balances(book) == [100, 100]


def test_a_chunk_whose_lease_is_over_goes_to_another_worker_and_each_line_is_posted_once():
    book = new_book()
    run = start_import(book, [csv("acme,A1,1,r1", "acme,A1,2,r2", "acme,A2,4,r3")], scan=False)
    slow = chunks.claim(run.pk, 1)
    assert chunks.claim(run.pk, 2) is None  # it is the only chunk, and it is held
    seen_by_slow = list(slow.lines.all())
    ImportChunk.objects.filter(pk=slow.pk).update(lease_until=Now())
    drain(run)
    assert balances(book) == [103, 104]
    for line in seen_by_slow:  # the slow one wakes up, and posts what it still believes to be waiting
        apply._post(slow, [line], line.key, {line.account: line.amount})
    assert {line.state for line in seen_by_slow} == {"posted"}
    apply.report(slow, seen_by_slow)
    assert not chunks.renew(slow)
    assert balances(book) == [103, 104]
    assert books_of(book).lost_amount == 0


def test_what_a_worker_without_a_lease_says_counts_only_if_it_posted():
    book = new_book()
    run = start_import(book, [csv("acme,A1,1,r1")], scan=False)
    stale = chunks.claim(run.pk, 1)
    ImportChunk.objects.update(token=F("token") + 1)
    (line,) = stale.lines.all()
    line.state = ImportLine.State.BUSY
    apply.report(stale, [line])
    assert states(run) == [(2, "waiting")]


def test_the_scan_charges_the_busiest_accounts_while_files_are_open_and_never_after():
    book = new_book()
    run = start_import(book, [csv("acme,A1,1,r1", "acme,A1,2,r2", "acme,A2,4,r3")])
    assert start_round(run)
    assert not start_round(run)  # the round before is not done
    drain(run)
    assert balances(book) == [102, 103]
    run.refresh_from_db()
    assert run.finished
    assert not start_round(run)


def test_a_fresh_book_has_the_accounts_of_its_files():
    book = open_book_for([csv("acme,X1,1,r1"), csv("acme,X2,1,r1")], "no-lock", 500)
    assert balances(book) == [500, 500]
    with pytest.raises(ValueError, match=r"x.csv: line 2: amount"):
        open_book_for([csv("acme,A1,?,r1", name="x.csv")], "no-lock")


def test_a_line_is_posted_only_with_its_entry_in_the_books():
    book = new_book()
    run = imported(book, [csv("acme,A1,1,r1", "acme,A1,2,r2")])
    entry = ImportLine.objects.filter(batch__run=run).values_list("entry", flat=True)[0]
    other = start_import(book, [csv("bolt,A1,1,r1", name="bolt.csv")], scan=False)
    line = ImportLine.objects.filter(batch__run=other)
    for lie in ({"entry": None}, {"entry": entry}, {"entry": book.pk}):
        with pytest.raises(DatabaseError, match="has no entry in the books"), transaction.atomic():
            line.update(state="posted", **lie)
    with pytest.raises(DatabaseError, match="cannot be changed"), transaction.atomic():
        line.update(amount=2)


def test_a_posted_line_is_final():
    run = imported(new_book(), [csv("acme,A1,1,r1")])
    lines = ImportLine.objects.filter(batch__run=run)
    for change in (lambda: lines.update(state="waiting"), lambda: lines.update(problem="x"), lines.delete):
        with pytest.raises(DatabaseError, match="a posted line is final"), transaction.atomic():
            change()


kinds = st.sampled_from(["good", "good", "good", "unknown", "garbage", "repeated", "too low"])


@pytest.mark.deep
@settings(max_examples=25, deadline=None)
@given(st.lists(kinds, min_size=1, max_size=8), st.booleans())
def test_all_or_nothing_is_never_half(some, all_or_nothing):
    """Whatever is in a file: under all or nothing each line is in the balance or none, else each good one is."""
    texts = {
        "unknown": "acme,A9,1,r{n}",
        "garbage": "\x00",
        "repeated": "acme,A1,1,r1",
        "too low": "acme,A2,-999,r{n}",
    }
    lines = [texts.get(kind, "acme,A1,1,r{n}").format(n=n) for n, kind in enumerate(some, start=2)]
    book = new_book(floor=0)
    run = imported(book, [csv("acme,A1,1,r1", *lines)], all_or_nothing=all_or_nothing)
    good = 1 + some.count("good")
    whole = good == len(lines) + 1
    assert balances(book)[0] - 100 == (good if whole or not all_or_nothing else 0)
    assert balances(book)[1] == 100
    posted = [state for _, state in states(run) if state == "posted"]
    assert len(posted) == (good if whole or not all_or_nothing else 0)
    assert run.finished
    assert books_of(book).lost_amount == 0
