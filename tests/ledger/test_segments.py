"""The clients' operations by the rows of a split account: what was asked for is judged, not what was written."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pytest

from ledger.models import Book
from ledger.posting import Line, Posting
from ledger.reconcile import Books, ClientOperation, ClientOutcome, reconcile_book
from ledger.stores import KeyTaken
from ledger.stores.segments import spread
from ledger.strategies import find, segmented_balance, skip_locked
from loadtest.history.calls import Call, CallHistory
from loadtest.trials.case import TrialCase, Witness, run
from loadtest.verdict.words import Word
from loadtest.workloads.deposits import Deposits
from tests.ledger.history import History as Row

OK, FAIL, INFO = ClientOutcome.OK, ClientOutcome.FAIL, ClientOutcome.INFO


def books(asked: int, *entries: tuple[str, int], outcome: ClientOutcome = OK) -> Books:
    """The books of X, of which one client asked `asked` under the key k, and which has these entries: (row, amount)."""
    rows = {number: Row(number=number) for number in ("X/0", "X/1", "X/2", "X/3")}
    for row, amount in entries:
        rows[row].write("k", amount)
    operations = {"X": [ClientOperation("k", asked, outcome, 0.0, 1.0)]}
    told = spread(operations, (("k", row, amount) for row, amount in entries))
    return reconcile_book(((row.account, row.entries) for row in rows.values()), told)


@pytest.mark.parametrize(
    ("asked", "entries"),
    [
        (10, [("X/2", 10)]),
        (-10, [("X/0", -4), ("X/1", -6)]),
        (-10, [("X/3", 0), ("X/0", -4), ("X/1", -6)]),
    ],
)
def test_what_was_asked_for_may_come_in_shares(asked: int, entries: list[tuple[str, int]]) -> None:
    found = books(asked, *entries)
    assert (found.right, found.acknowledged, found.created_updates) == (True, asked, 0)


@pytest.mark.parametrize("outcome", [OK, INFO])
@pytest.mark.parametrize(
    ("asked", "entries"),
    [
        (10, [("X/0", 10), ("X/3", 10)]),
        (-10, [("X/0", -4), ("X/1", -6), ("X/2", -10)]),
        (-10, [("X/3", 0), ("X/1", -10), ("X/0", -3), ("X/2", -7)]),
    ],
)
def test_what_was_applied_twice_is_created(
    asked: int, entries: list[tuple[str, int]], outcome: ClientOutcome
) -> None:
    found = books(asked, *entries, outcome=outcome)
    assert (found.right, found.created_amount, found.drift) == (False, 10, asked)
    assert "is in another row of its account already" in found.created[0]


@pytest.mark.parametrize("entries", [[("X/0", 1)], [("X/0", 4), ("X/1", 5)], [("X/0", 25)], [("X/0", -10)]])
def test_another_sum_than_was_asked_for_does_not_balance(entries: list[tuple[str, int]]) -> None:
    found = books(10, *entries)
    assert (found.right, found.balanced) == (False, False)
    assert found.drift == sum(amount for _, amount in entries) - 10


def test_what_left_no_entry_is_lost_and_what_was_refused_and_is_there_is_created() -> None:
    assert (books(10).lost_amount, books(10, outcome=FAIL).right) == (10, True)
    assert books(10, ("X/2", 10), outcome=FAIL).created_amount == 10


def sent_twice(case: TrialCase, book: Book) -> Witness:
    """Two clients meet, and one of them sends its request a second time."""
    strategy, number = find(book.strategy)(book), case.workload.openings()[0].account
    for key in ("k", "k2", "k"):
        with suppress(KeyTaken):
            strategy.apply(Posting(key, (Line(number, 10),)))
    calls = [Call(key, ((number, 10),), OK, start, start + 2.0, key) for start, key in enumerate(("k", "k2"))]
    return Witness(history=CallHistory(calls=calls))


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("slug", ["segmented-balance", "skip-locked"])
@pytest.mark.parametrize("word", [Word.KEPT, Word.CREATED])
def test_a_trial_sees_what_was_applied_twice(slug: str, word: Word, monkeypatch: pytest.MonkeyPatch) -> None:
    if (
        word is Word.CREATED
    ):  # the key decides nothing any more: neither the row nor whether it was there before
        rows, places, strategy = count(), count(), find(slug)
        monkeypatch.setattr(segmented_balance, "home", lambda _: next(rows))
        monkeypatch.setattr(skip_locked, "ANY_FREE", skip_locked.ANY_FREE.replace("BY number", "BY version"))
        add = strategy.add
        monkeypatch.setattr(strategy, "add", lambda it, posting, line: add(it, posting, line, next(places)))
    assert run(TrialCase(strategy=slug, workload=Deposits()), sent_twice, Word.LOST).verdict.word is word
