"""The admin's comparison: one import after the other, out of rows, and the one judge for all of them."""

from __future__ import annotations

import pytest

from ledger.books import open_book
from ledger.imports import apply, chunks
from ledger.imports.stop import stop
from ledger.imports.upload import Upload, open_book_for, start_import
from ledger.models import Account, Book, ImportRun
from ledger.strategies import CARD
from loadtest.admin.comparison import again
from loadtest.background.imports import IMPORTS, ImportComparison
from loadtest.models import Trial
from loadtest.tasks import advance_comparisons
from loadtest.workloads import Opening
from tests.ledger.test_admin import FORM, anonymous, importer, upload, user

pytestmark = pytest.mark.usefixtures("committed_db")
FILE = Upload("acme.csv", b"seller,account,amount,reference\nacme,A1,10,r1\nacme,A1,5,r2\nacme,A9,1,r3\n")
FAST = {"think": [0, 0]}


def drain(import_id: int) -> None:
    while chunk := chunks.claim(import_id, 1):
        apply.work(chunk)
        chunks.give_back(chunk)


def compared(asked_for: ImportComparison) -> Trial:
    """Work the imports off in this process, one line after the other."""
    row = IMPORTS.begin(asked_for)
    assert not IMPORTS.advance(row.pk)  # the control's import has not finished
    for _ in range(10):
        drain(max(row.options["imports"].values()))
        assert IMPORTS.advance(row.pk)
        while IMPORTS.advance(row.pk):
            pass  # what cannot be tried here is passed over
        row.refresh_from_db()
        if row.ended:
            return row
    raise AssertionError(f"did not end: {row.options}")


def test_the_control_comes_first_and_a_run_without_contention_proves_nothing():
    asked_for = ImportComparison(
        files=(FILE,),
        opening=100,
        strategies=("select-for-update", "optimistic-version"),
        scan=False,
        settings=FAST,
    )
    row = compared(asked_for)
    results = list(row.results.all())
    assert [each.strategy for each in results] == ["no-lock", "select-for-update", "optimistic-version"]
    for each in results:
        assert each.verdict == "inconclusive"
        assert "no two operations overlapped" in each.data["cause"]
        assert (each.data["expected"], each.data["final"], each.data["lost_amount"]) == (216, 216, 0)
        assert each.data["operations"]["ok"] == 3
    assert len({each.book_id for each in results}) == 3
    assert not IMPORTS.advance(row.pk)


def test_beside_the_card_the_set_based_import_is_the_last_row():
    row = compared(ImportComparison(files=(FILE,), opening=100, scan=False, settings=FAST))
    *others, last = row.results.all()
    assert [each.strategy for each in others] == list(CARD)
    assert all("way" not in each.data for each in others)
    assert (last.strategy, last.data["way"], last.data["final"]) == ("select-for-update", "set-based", 216)
    run = ImportRun.objects.get(pk=row.options["imports"]["set-based"])
    assert (run.way, run.book_id) == ("set-based", last.book_id)
    page = user("loadtest.view_trial").get(f"/admin/loadtest/trial/{row.pk}/change/").content.decode()
    assert "Set-based import" in page


def test_a_stopped_comparison_judges_what_runs_and_begins_no_more():
    row = IMPORTS.begin(
        ImportComparison(files=(FILE,), strategies=("select-for-update",), scan=False, settings=FAST)
    )
    stopper = user("loadtest.add_trial", "loadtest.view_trial")
    assert "stopping" in stopper.post(f"/admin/loadtest/trial/{row.pk}/stop/", follow=True).content.decode()
    assert not IMPORTS.advance(row.pk)  # the control's import has not finished
    drain(row.options["imports"]["no-lock"])
    assert IMPORTS.advance(row.pk)
    row.refresh_from_db()
    assert row.ended
    assert list(row.results.values_list("strategy", flat=True)) == ["no-lock"]


def test_an_import_that_was_stopped_is_not_called_kept_and_the_next_one_begins():
    row = IMPORTS.begin(
        ImportComparison(files=(FILE,), strategies=("select-for-update",), scan=False, settings=FAST)
    )
    stop(ImportRun.objects.get(pk=row.options["imports"]["no-lock"]))
    assert (IMPORTS.advance(row.pk), IMPORTS.advance(row.pk)) == (True, False)
    row.refresh_from_db()
    (control,) = row.results.all()
    assert control.verdict == "inconclusive"
    assert "its import was stopped with 3 lines left" in control.data["cause"]
    assert list(row.options["imports"]) == ["no-lock", "select-for-update"]


def test_a_lost_line_is_seen_in_the_balance_and_named():
    row = IMPORTS.begin(
        ImportComparison(files=(FILE,), opening=100, strategies=(), scan=False, settings=FAST)
    )
    (import_id,) = row.options["imports"].values()
    book = ImportRun.objects.get(pk=import_id).book
    account = Account.objects.get(book=book, number="A1")
    drain(import_id)
    Account.objects.filter(pk=account.pk).update(balance=100, version=0, head=None)  # as a stale write would
    assert IMPORTS.advance(row.pk)
    (result,) = row.results.all()
    assert result.verdict == "lost"
    assert (result.data["lost_amount"], result.data["lost_updates"]) == (15, 2)


def test_a_strategy_that_cannot_be_tried_here_is_not_run_with_its_reason():
    row = compared(
        ImportComparison(
            files=(FILE,), strategies=("redis-watch",), scan=False, settings=FAST, store="postgres"
        )
    )
    skipped = row.results.get(strategy="redis-watch")
    assert skipped.verdict == "not-run"
    assert "only on redis" in skipped.data["reason"]


def test_an_import_is_repeated_with_its_files_and_its_accounts():
    book = open_book_for([FILE], "no-lock", 70, values=FAST)
    run = start_import(book, [FILE, FILE], workers=3, scan=False)
    repeat = again(run)
    assert repeat.files == (FILE,)  # the second was a duplicate
    assert repeat.openings == (Opening("A1", 70), Opening("A9", 70))
    assert (repeat.workers, repeat.scan, repeat.settings) == (3, False, FAST)


@pytest.mark.parametrize(
    ("client", "status"),
    [(anonymous, 302), (user, 403), (importer, 403), (lambda: user("loadtest.add_trial"), 302)],
    ids=["anonymous", "staff", "importer", "comparer"],
)
def test_only_staff_with_the_permission_compares(client, status):
    before = Trial.objects.count(), Book.objects.count()
    answer = client().post("/admin/loadtest/trial/compare/", upload())
    assert answer.status_code == status
    started = "/trial/" in answer.get("Location", "") and "login" not in answer["Location"]
    assert (Trial.objects.count() - before[0], Book.objects.count() - before[1]) == (started, started)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"files": []}, "Choose one or more CSV files"),
        ({"strategies": ["os:system"]}, "Select a valid choice"),
        ({"store": "paper"}, "Select a valid choice"),
    ],
)
def test_a_bad_comparison_says_what_is_wrong_and_starts_nothing(wrong, problem):
    before = Trial.objects.count()
    answer = user("loadtest.add_trial").post("/admin/loadtest/trial/compare/", {**FORM, **upload(), **wrong})
    assert answer.status_code == 200
    assert problem in answer.content.decode()
    assert Trial.objects.count() == before


def test_an_import_that_cannot_be_judged_holds_up_nobody(monkeypatch):
    """Its server is gone, say: it is not-run with the reason, and its comparison goes on; so do the others."""
    broken = IMPORTS.begin(ImportComparison(files=(FILE,), strategies=("setnx",), scan=False, settings=FAST))
    drain(broken.options["imports"]["no-lock"])
    monkeypatch.setattr("loadtest.background.imports.run", lambda *_: {}["the server"])
    assert IMPORTS.advance(broken.pk)
    monkeypatch.undo()
    assert not IMPORTS.advance(broken.pk)  # the next one has begun
    drain(Trial.objects.get(pk=broken.pk).options["imports"]["setnx"])
    assert IMPORTS.advance(broken.pk)
    first, second = broken.results.all()
    assert (first.verdict, "the server" in first.data["reason"]) == ("not-run", True)
    assert second.strategy == "setnx"


def test_an_import_that_cannot_be_started_is_not_run_with_its_reason(monkeypatch):
    row = IMPORTS.begin(ImportComparison(files=(FILE,), strategies=("setnx",), scan=False, settings=FAST))
    drain(row.options["imports"]["no-lock"])
    monkeypatch.setattr("loadtest.background.imports.start_import", lambda *_, **__: {}["the disk"])
    assert (IMPORTS.advance(row.pk), IMPORTS.advance(row.pk)) == (True, True)
    last = row.results.get(strategy="setnx")
    assert (last.verdict, "could not be started: 'the disk'" in last.data["reason"]) == ("not-run", True)
    assert row.pk not in IMPORTS.waiting()


def test_a_comparison_that_cannot_be_advanced_holds_up_nobody(monkeypatch):
    rows = [IMPORTS.begin(ImportComparison(files=(FILE,), scan=False, settings=FAST)).pk for _ in range(2)]
    asked = []
    monkeypatch.setattr(IMPORTS, "advance", lambda pk: asked.append(pk) or {}[pk])
    advance_comparisons.func(0)
    assert set(rows) <= set(asked)


def test_a_split_accounts_import_is_repeated_with_whole_accounts():
    book = open_book("segmented-balance", [("A1", 70, 5), ("A9", 3, None)], values=FAST)
    assert again(start_import(book, [FILE], scan=False)).openings == (
        Opening("A1", 70, 5),
        Opening("A9", 3, None),
    )


def test_a_comparison_that_cannot_be_started_says_so_on_the_imports_page(settings):
    settings.TRIALS_AT_ONCE = 0
    run = start_import(open_book_for([FILE], "no-lock", 0, values=FAST), [FILE], scan=False)
    client = user("loadtest.add_trial", "ledger.view_importrun")
    answer = client.post(f"/admin/loadtest/trial/compare/{run.pk}/", follow=True)
    assert answer.redirect_chain == [(f"/admin/ledger/importrun/{run.pk}/change/", 302)]
    assert "TRIALS_AT_ONCE" in answer.content.decode()


def test_a_running_comparison_is_shown():
    row = IMPORTS.begin(ImportComparison(files=(FILE,), scan=False, settings=FAST))
    viewer = user("loadtest.view_trial")
    page = viewer.get(f"/admin/loadtest/trial/{row.pk}/change/").content.decode()
    assert "0 of 3" in page
    assert page.count(">waiting<") == len(CARD)
    assert user().get(f"/admin/loadtest/trial/{row.pk}/results/").status_code == 403
