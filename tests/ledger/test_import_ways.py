"""The set-based way to import: the same books as line by line, each line once, a bad line alone refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from ledger.admin.import_form import ImportForm
from ledger.books import open_book, post
from ledger.imports import apply, set_based, ways
from ledger.imports.operations import books_with_imports
from ledger.imports.retry import try_again
from ledger.imports.ways import Way
from ledger.models import Account, Book, Entry, ImportRun
from ledger.posting import Line, Posting, Refused
from ledger.reconcile_stored import books_of
from ledger.strategies import find
from tests.ledger.test_imports import HEADER, balances, csv, drain, imported, new_book, states

pytestmark = pytest.mark.usefixtures("committed_db")
LINES = [f"acme,A{n % 2 + 1},{n - 3},r{n}" for n in range(8)]
ROWS = [(number, "posted") for number in range(2, 10)]


def set_based_import(book: Book, *lines: str, **options: Any) -> ImportRun:
    return imported(book, [csv(*lines)], way=Way.SET_BASED, **options)


def test_it_leaves_the_books_that_line_by_line_leaves() -> None:
    one, other = new_book(), new_book()
    run = set_based_import(one, *LINES)
    imported(other, [csv(*LINES)])
    assert states(run) == ROWS
    assert balances(one) == balances(other)
    columns = ("key", "fingerprint", "amount", "balance_before", "balance_after", "account__number")
    ours, theirs = (
        sorted(Entry.objects.filter(book=book).order_by("seq").values_list(*columns)) for book in (one, other)
    )
    assert ours == theirs
    assert books_with_imports(one).right


def test_a_chunk_is_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.imports.upload.SET_BASED_LINES", 3)
    asked: list[int] = []
    whole = ways.post_lines
    monkeypatch.setattr(
        ways, "post_lines", lambda book, lines: asked.append(len(lines)) or whole(book, lines)
    )
    monkeypatch.setattr(apply, "post", lambda *of: pytest.fail("line by line"))
    set_based_import(new_book(), *LINES)
    assert asked == [3, 3, 2]


def test_a_line_that_is_refused_is_refused_alone() -> None:
    book = new_book(floor=0)
    run = set_based_import(book, "acme,A1,5,r1", "acme,A1,-500,r2", "acme,A2,7,r3")
    assert states(run) == [(2, "posted"), (3, "refused"), (4, "posted")]
    assert balances(book) == [105, 107]
    assert books_with_imports(book).right


def test_under_all_or_nothing_one_refused_line_refuses_the_file() -> None:
    book = new_book(floor=0)
    run = set_based_import(book, "acme,A1,5,r1", "acme,A1,-500,r2", "acme,A2,7,r3", all_or_nothing=True)
    assert states(run) == [(number, "refused") for number in (2, 3, 4)]
    assert balances(book) == [100, 100]
    Account.objects.filter(book=book, number="A1").update(floor=None)
    assert try_again(run) == 3
    drain(run)
    assert states(run) == [(number, "posted") for number in (2, 3, 4)]
    assert books_with_imports(book).right


def test_a_key_that_came_before_is_posted_once() -> None:
    """By the API, with the same request and with another one."""
    book = new_book()
    post(book, Posting("import/acme/r1", (Line("A1", 5),)))
    post(book, Posting("import/acme/r2", (Line("A1", 5),)))
    run = set_based_import(book, "acme,A1,5,r1", "acme,A1,6,r2", "acme,A2,7,r3")
    assert states(run) == [(2, "posted"), (3, "refused"), (4, "posted")]
    assert balances(book) == [110, 107]


def test_a_worker_that_dies_before_it_reports_has_posted_no_line_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = new_book()

    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(apply, "report", die)
        with pytest.raises(Killed):
            set_based_import(book, *LINES)
    run = ImportRun.objects.get(book=book)
    run.batches.get().chunks.update(lease_until=None, state="waiting")
    drain(run)
    assert states(run) == ROWS
    assert Entry.objects.filter(book=book, key__startswith="import/").count() == len(LINES)
    assert books_of(book).right


def test_an_error_leaves_the_lines_to_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    book = new_book()

    def broken(*_: Any) -> None:
        raise OSError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(ways, "post_lines", broken)
        run = set_based_import(book, "acme,A1,5,r1")
    assert run.finished is None
    run.batches.get().chunks.update(not_before="2000-01-01T00:00:00Z")
    drain(run)
    assert states(run) == [(2, "posted")]
    assert balances(book)[0] == 105


@pytest.mark.parametrize("slug", ways.fitting())
def test_it_shares_a_book_with_every_strategy_that_says_so(slug: str) -> None:
    """Postings by the strategy meet the load in the middle: nothing is overwritten, either way."""
    book = open_book(slug, [("A1", 0, None)], values={"think": [0, 0], "retries": 1000, "timeout": 60.0})
    lines = [f"acme,A1,1,r{n}" for n in range(50)]

    def pay(number: int) -> None:
        try:
            for turn in range(10):
                post(book, Posting(f"api-{number}-{turn}", (Line("A1", 1),)))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as payers:
        paid = [payers.submit(pay, number) for number in range(2)]
        run = set_based_import(book, *lines)
        for each in paid:
            each.result(60)
    while not run.finished:
        drain(run)
        run.refresh_from_db()
    assert balances(book) == [70]
    assert books_of(book).right


def test_it_shares_no_book_with_the_others() -> None:
    """Also not with one that inherits from a strategy which says so."""
    assert {"select-for-update", "atomic-update", "optimistic-version"} <= set(ways.fitting())
    assert not {"no-lock", "segmented-balance", "optimistic-value", "redis-gate", "token"} & set(
        ways.fitting()
    )
    book = new_book("no-lock")
    with pytest.raises(ValueError, match="does not keep out no-lock on postgres: import line by line"):
        set_based_import(book, *LINES)
    assert not ImportRun.objects.filter(book=book).exists()


def test_without_the_rows_lock_a_load_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The must-fail control: what `no-lock` read before the load, it writes after it."""
    book = new_book("no-lock")
    unprotected = find("no-lock")(book)
    usual = unprotected.store.read

    def load() -> None:
        try:
            set_based.post_lines(book, [ways.BulkLine("k", "A1", 50)])
        finally:
            connections.close_all()

    def read(*of: Any, **options: Any) -> Any:
        found = usual(*of, **options)
        with ThreadPoolExecutor(1) as another:
            another.submit(load).result(60)
        return found

    monkeypatch.setattr(unprotected.store, "read", read)
    unprotected.apply(Posting("late", (Line("A1", 1),)))
    assert balances(book)[0] == 101, "50 are gone"
    assert not books_of(book).right


def form(**chosen: Any) -> ImportForm:
    usual = {"workers": 1, "store": "postgres", "opening": 0, "think": 0, "poll": 10, "timeout": 1000}
    return ImportForm({"samples": "", **usual, **chosen})


def test_the_form_opens_a_fitting_book_and_refuses_another() -> None:
    chosen = form(way=Way.SET_BASED.value)
    assert chosen.is_valid(), chosen.errors
    assert chosen.cleaned_data["strategy"] == "select-for-update"
    wrong = form(way=Way.SET_BASED.value, strategy="no-lock")
    assert "does not keep no-lock out" in wrong.errors["strategy"][0]
    assert form(strategy="no-lock").is_valid()
    assert "way" in form(way="by-magic", strategy="no-lock").errors


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = []
    for seller in ("acme", "bolt"):
        path = tmp_path / f"{seller}.csv"
        path.write_text(HEADER + "\n".join(f"{seller},A{n % 3},{n},r{n}" for n in range(40)))
        paths.append(str(path))
    return paths


def command(*words: str) -> tuple[int, dict[str, Any]]:
    out, code = StringIO(), 0
    try:
        call_command("import", *words, "--json", stdout=out)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, json.loads(out.getvalue())


@pytest.mark.parametrize("way", Way.values)
def test_the_command_imports_files_once(files: list[str], way: str) -> None:
    code, found = command(*files, "--way", way, "--workers", "2")
    assert (code, found["posted"], found["lines"], found["way"]) == (0, 80, 80, way)
    book = Book.objects.get(pk=found["book"])
    assert (book.strategy, sum(balances(book))) == ("select-for-update", 2 * sum(range(40)))
    assert books_with_imports(book).right
    code, again = command(*files, "--way", way, "--book", found["book"])
    assert (code, again["posted"]) == (0, 0)
    assert {each["state"] for each in again["files"]} == {"duplicate"}


def test_the_command_says_which_lines_are_not_posted(files: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(HEADER + "acme,A1,1.50,x1\nacme,A1,1,x2\n")
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("import", str(bad), stdout=out)
    assert ended.value.code == 1
    assert "bad.csv, line 2: amount: '1.50'" in out.getvalue()
    assert "1 of 2 lines posted" in out.getvalue()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.csv"], "nowhere.csv: No such file"),
        (["{file}", "--book", "7"], "no book 7"),
        (["{file}", "--strategy", "nonsense"], "no strategy 'nonsense'"),
        (["{file}", "--strategy", "no-lock", "--way", "set-based"], "import line by line"),
        (["{file}", "--workers", "0"], "--workers must be 1 to 16"),
        (["{file}", "--way", "by-magic"], "invalid choice"),
    ],
)
def test_bad_usage_is_reported_and_leaves_nothing(files: list[str], words: list[str], told: str) -> None:
    books = Book.objects.count()
    with pytest.raises(CommandError, match=told) as error:
        call_command("import", *(word.format(file=files[0]) for word in words))
    assert error.value.returncode in (1, 2)
    assert Book.objects.count() == books


def test_a_refusal_of_a_line_is_not_taken_for_one_of_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal by the ledger itself keeps the line's own message."""

    def refuse(*_: Any) -> None:
        raise Refused("closed today")

    monkeypatch.setattr(ways, "post_lines", refuse)
    run = set_based_import(new_book(), *LINES)
    assert states(run) == ROWS, "line by line they are right"
