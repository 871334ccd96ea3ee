"""`manage.py reconcile` as its caller sees it: words, JSON, exit codes."""

from __future__ import annotations

import json
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from rich.console import Console

from ledger.models import Book
from ledger.reconcile import ClientOutcome, reconcile_book
from ledger.reconcile.terminal import show
from tests.contracts import lost
from tests.ledger.history import History
from tests.ledger.test_reconciliation import deposit, opened, overtaken

__all__ = ["overtaken"]
pytestmark = pytest.mark.usefixtures("committed_db")


def run(*options: str) -> tuple[int, str]:
    """Exit code and output."""
    out = StringIO()
    try:
        call_command("reconcile", *options, stdout=out)
    except SystemExit as exit_:
        return int(str(exit_.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


@pytest.fixture
def right() -> Book:
    book = opened("select-for-update", "A1", "A2")
    deposit(book, "a", 10)
    return book


def test_books_that_balance(right: Book):
    code, out = run("--book", str(right.pk))
    assert code == 0
    assert f"{right.pk}: select-for-update on postgres" in out
    assert "The books balance: opening 200 and 1 entries make 210; nothing is lost" in out


def test_a_loss_is_exit_code_1_and_told_in_a_sentence(overtaken):
    code, out = run("--book", str(overtaken().pk))
    assert code == 1
    assert "First loss, account A1: " in out
    assert "'s 110 at " in out
    assert out.count("10 lost.") == 1, "the first loss is the last and the worst too, and told once"


def test_one_account(overtaken):
    book = overtaken("A1", "A2")
    assert run("--book", str(book.pk), "--account", "A1")[0] == 1
    assert run("--book", str(book.pk), "--account", "A2")[0] == 0


def test_json(overtaken, right: Book):
    code, out = run("--book", str(overtaken().pk), "--json")
    told = json.loads(out)
    assert lost("reconcile.json", told) == []
    assert (code, told["right"]) == (1, False)
    (result,) = told["results"]
    assert (result["strategy"], result["lost_amount"], result["lost_updates"]) == ("no-lock", 10, 1)
    assert (result["expected"], result["final"], result["drift"], result["balanced"]) == (130, 120, -10, True)
    assert result["accounts"][0]["first_loss"]["overwritten_by"]["key"] == "second"
    code, out = run("--book", str(right.pk), "--account", "A1", "--json")
    assert (code, json.loads(out)["right"], json.loads(out)["results"][0]["account"]) == (0, True, "A1")


def test_all_books(overtaken, right: Book):
    lost = overtaken()
    code, out = run("--json")
    assert code == 1
    results = {each["book"]: each for each in json.loads(out)["results"]}
    assert (results[str(lost.pk)]["lost_amount"], results[str(right.pk)]["lost_amount"]) == (10, 0)


def test_the_end_of_many_tables_names_those_that_lost(
    overtaken, right: Book, monkeypatch: pytest.MonkeyPatch
):
    lost = overtaken()
    only = Book.objects.filter(pk__in=[right.pk, lost.pk]).order_by("created")
    monkeypatch.setattr(Book, "objects", only)
    told = f"1 of 2 books do not balance, or lost or created money: {lost.pk} (no-lock)"
    assert run()[1].splitlines()[-1] == told


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--book", "nonsense"], "no book 'nonsense'. The latest:"),
        (["--book", str(uuid4())], "no book "),
        (["--account", "A1"], "--account needs --book"),
    ],
)
def test_bad_usage(right: Book, options: list[str], says: str):
    code, out = run(*options)
    assert code == 2
    assert says in out


def test_an_account_that_is_not_in_the_book(right: Book):
    code, out = run("--book", str(right.pk), "--account", "A9")
    assert (code, out) == (2, "no account A9 in this book")


def test_no_book_at_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Book.objects, "order_by", lambda *names: Book.objects.none())
    assert run() == (2, "no book has been opened yet: `make demo` opens some")


def shown(*histories: History, width: int = 160) -> str:
    console = Console(file=StringIO(), width=width)
    rows = [(each.account, each.entries) for each in histories]
    show(console, "title", reconcile_book(rows, {each.number: each.operations for each in histories}))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_everything_that_went_wrong_is_reported():
    twice, refused, torn, broken = (
        History(number=number) for number in ("twice", "refused", "[torn]", "broken")
    )
    twice.write("t", 10, outcome=ClientOutcome.OK)
    twice.write("t", 10)
    refused.write("f", 3, outcome=ClientOutcome.FAIL)
    torn.told("t", -10, ClientOutcome.INFO)
    broken.write("x", 1, outcome=ClientOutcome.OK)
    broken.entries.clear()
    out = shown(twice, refused, torn, broken)
    assert "operation t is on the chain twice" in out
    assert "operation f was refused" in out
    assert (
        "1 torn postings; the worst: posting t is on the chain of twice (+10) but not on that of [torn] (-10)"
        in out
    )
    assert "Does not add up: the chain is broken" in out
    assert "The books balance" not in out


def test_a_book_of_many_accounts_shows_the_worst_and_counts_the_rest():
    histories = [History(number=f"A{number}") for number in range(30)]
    for number, history in enumerate(histories):
        history.write("a", number, None, outcome=ClientOutcome.OK)
        history.write("b", 0, None, outcome=ClientOutcome.OK)
    out = shown(*histories)
    assert "… and 10, of which 10 are wrong" in out
    assert " A29 " in out
    assert " A5 " not in out


def test_what_balances_is_a_line_where_it_is_many():
    out = shown(*(History(number=f"A{number}") for number in range(30)))
    assert "30 accounts that balance" in out
    assert " A5 " not in out
    assert " drift " not in out, "nothing drifted"


def test_no_figure_is_cut_on_a_narrow_terminal():
    history = History(opening=9_000_000_000_000_000, number="a-number-of-as-many-characters-as-there-may-be")
    history.write("a", 123_456_789_012_345, None, outcome=ClientOutcome.OK)
    history.write("b", 1, None, outcome=ClientOutcome.OK)
    out = shown(history, width=40)
    assert "…" not in out.split("•")[0]
    for figure in ("9,000,000,000,000,000", "9,123,456,789,012,346", "123,456,789,012,345", "updates lost"):
        assert figure in out
