"""One writer that breaks the rules: the failure that the pages of the right strategies name."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from ledger.models import Account
from ledger.posting import Line, Posting, Refused
from ledger.strategies import find
from tests.ledger.race import Race
from tests.ledger.race.books import assert_lost
from tests.ledger.race.worker import Worker

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.mark.parametrize(
    ("slug", "store", "other"),
    [
        ("select-for-update", "postgres", "select-for-update-late"),
        ("select-for-update-function", "postgres", "select-for-update-late"),
        ("row-lock-nowait", "postgres", "select-for-update-late"),
        ("advisory-lock", "postgres", "no-lock"),
        ("atomic-update", "postgres", "no-lock"),
        ("optimistic-version", "postgres", "no-lock"),
        ("redis-then-database", "postgres", "no-lock"),
        ("fenced", "postgres", "no-lock"),
        ("repeatable-read", "postgres", "no-lock"),
        ("serializable", "postgres", "no-lock"),
        ("redis-watch", "redis", "no-lock"),
        ("redis-atomic", "redis", "no-lock"),
        ("repeatable-read-innodb-snapshot", "mariadb", "repeatable-read-innodb"),
        ("serializable", "mariadb", "repeatable-read-innodb"),
    ],
    indirect=["store"],
)
def test_one_writer_beside_the_rules_overwrites_who_kept_them(slug: str, store: str, other: str) -> None:
    with Race(slug, store=store) as race:
        outsider = race.worker("outsider", +20)
        outsider.strategy = find(other)(race.book)
        outsider.strategy.think = lambda: outsider.passes("think")  # type: ignore[method-assign]
        outsider.runs_to("think")
        race.worker("A", +10).finishes()
        outsider.finishes()
        assert race.balance() == 120
        assert_lost(race, 10, by="outsider")


def together_they_keep_100(worker: Worker) -> Worker:
    """Its business has a rule over two rows, and writes one of them."""
    store: Any = worker.strategy.store
    read = store.read

    def with_the_rule(posting: Posting) -> Any:
        both = read(Posting("", (Line("A", 0), Line("B", 0))))
        if sum(each.balance for each in both.values()) + posting.lines[0].amount < 100:
            raise Refused("A and B together keep 100")
        return {number: both[number] for number in posting.accounts}

    store.read = with_the_rule
    return worker


@pytest.mark.parametrize(
    ("slug", "store", "left"),
    [
        ("repeatable-read", "postgres", 0),
        ("repeatable-read-innodb-snapshot", "mariadb", 0),
        ("serializable", "postgres", 100),
    ],
    indirect=["store"],
)
def test_a_rule_over_two_rows_is_skewed_by_two_who_write_one_each(slug: str, store: str, left: int) -> None:
    with Race(slug, store=store) as race:
        a, b = race.worker("A", -100, to="A"), race.worker("B", -100, to="B")
        for worker in (a, b):
            together_they_keep_100(worker).runs_to("think")
        a.finishes()
        if left:
            b.fails(Refused)  # 40001 at first; then it reads what A has left
        else:
            b.finishes()
        assert race.balance("A") + race.balance("B") == left
        assert [race.books().lost_updates, race.books().created_updates] == [0, 0]


def test_skip_locked_on_a_row_that_is_needed_says_that_there_is_none() -> None:
    with Race("select-for-update") as race:
        race.worker("A", +10).runs_to("think")
        rows = Account.objects.filter(book=race.book, number="A")
        with transaction.atomic():
            assert rows.select_for_update(skip_locked=True).first() is None
        assert rows.exists()
