"""Decisions by a balance before the write: strategies that add, and so read nothing, cannot protect them.

Their think time is before the one statement, script or call. What is decided there rests on a balance that is over.
"""

from __future__ import annotations

from itertools import count

import pytest
from django.db import transaction

from ledger.models import Account
from ledger.posting import Applied, Line, Posting, Refused
from ledger.stores.segments import row_of
from ledger.strategies.segmented_balance import home
from tests.ledger.race import Race, Worker

pytestmark = pytest.mark.usefixtures("committed_db")
WANTED = Line("A", -60)
ADD = pytest.mark.parametrize(
    ("slug", "store"),
    [
        ("atomic-update", "postgres"),
        ("select-for-update-function", "postgres"),
        ("segmented-balance", "postgres"),
        ("segmented-balance", "mariadb"),
        ("skip-locked", "postgres"),
        ("redis-atomic", "redis"),
    ],
    indirect=["store"],
)


def decides(worker: Worker) -> Worker:
    """The business rule is "never below 0", and it is checked by the caller, in its think time."""
    strategy = worker.strategy

    def looks() -> None:
        if strategy.store.read(worker.posting)["A"].balance + WANTED.amount < 0:
            raise Refused("not enough")
        worker.passes("think")

    strategy.think = looks  # type: ignore[method-assign]
    return worker


@ADD
def test_two_who_decide_before_they_write_both_withdraw(slug: str, store: str) -> None:
    """Nothing is lost: each write is right, and the decision behind the second one is not."""
    with Race(slug, store=store) as race:
        a, b = (decides(race.worker(name, WANTED.amount)) for name in "AB")
        a.runs_to("think")
        b.runs_to("think")
        a.finishes()
        b.finishes()
        assert (race.balance(), race.kept()) == (-20, True)


@ADD
def test_a_floor_in_the_write_itself_holds_for_them(slug: str, store: str) -> None:
    with Race(slug, store=store, floor=0) as race:
        a, b = (decides(race.worker(name, WANTED.amount)) for name in "AB")
        a.runs_to("think")
        b.runs_to("think")
        a.finishes()
        b.fails(Refused)
        assert (race.balance(), race.kept()) == (40, True)


@pytest.mark.parametrize("all_rows", [False, True])
def test_a_decision_on_the_sum_of_the_rows_needs_all_of_them_locked(all_rows: bool) -> None:
    """Two decide on one sum and go to two rows: a writer that locks only its own row does not wait."""
    with Race("segmented-balance") as race:
        a, b = (locks_first(race, row, all_rows) for row in ("A/0", "A/3"))
        a.runs_to("think")
        if all_rows:
            b.waits()
        else:
            b.runs_to("think")
        a.finishes()
        if all_rows:
            b.fails(Refused)
        else:
            b.finishes()
        assert (race.balance(), race.kept()) == (40 if all_rows else -20, True)


def locks_first(race: Race, row: str, all_rows: bool) -> Worker:
    """A worker whose posting goes to `row`: it locks that one, or all rows, before it decides."""
    postings = (Posting(f"key-{number}", (WANTED,)) for number in count())
    worker = decides(race.poster(row, next(each for each in postings if row_of("A", home(each)) == row)))
    apply = worker.strategy.apply

    def locked(posting: Posting) -> Applied:
        rows = Account.objects.filter(book=race.book, number__startswith="A/" if all_rows else row)
        with transaction.atomic():
            assert list(rows.order_by("number").select_for_update())
            return apply(posting)

    worker.strategy.apply = locked  # type: ignore[method-assign]
    return worker
