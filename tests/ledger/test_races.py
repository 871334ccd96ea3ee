"""Every strategy's claim under contention, and the loss of those that claim nothing, in races that a test conducts.

A worker that was let in stands between its read and its write (`think`) while another one tries.
"""

from __future__ import annotations

import pytest

from ledger.lock_tables import LOCK_TABLES
from tests.ledger.race import Race, State
from tests.ledger.race.books import assert_lost

pytestmark = pytest.mark.usefixtures("committed_db")

#: strategies that claim to keep the balance when two want one account
RIGHT = {
    "postgres": [
        "setnx",
        "watchdog",
        "select-for-update",
        "optimistic-version",
        "lock-around-transaction",
        "row-lock-nowait",
        "advisory-lock",
        "atomic-update",
        "repeatable-read",
        "serializable",
        "select-for-update-function",
        "fenced",
        "fenced-at-write",
        "fenced-unchecked",
        "redis-then-database",
        "redis-gate",
        "single-writer",
        "segmented-balance",
        "skip-locked",
        *LOCK_TABLES,
    ],
    "redis": ["setnx", "watchdog", "token", "redis-atomic", "redis-watch"],
    "mariadb": [
        "token",
        "select-for-update",
        "optimistic-version",
        "lock-around-transaction",
        "row-lock-nowait",
        "atomic-update",
        "serializable",
        "fenced",
        "redis-then-database",
        "redis-gate",
        "segmented-balance",
        "repeatable-read-innodb-snapshot",
        *LOCK_TABLES,
    ],
}
#: strategies that lose it when both have read before either writes, without any fault
WRONG = {
    "postgres": ["no-lock", "select-for-update-late", "save-all-fields"],
    "redis": ["no-lock"],
    "mariadb": ["no-lock", "select-for-update-late", "save-all-fields", "repeatable-read-innodb"],
}


def each(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(slug, store) for store, slugs in table.items() for slug in slugs]


@pytest.mark.parametrize("second_first", [False, True], ids=["first-in-first", "second-in-first"])
@pytest.mark.parametrize(("slug", "store"), each(RIGHT), indirect=["store"])
def test_keeps_the_balance(slug: str, store: str, second_first: bool) -> None:
    with Race(slug, store=store) as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("think")
        far = b.tries("think")
        order = (b, a) if second_first and far is State.STOPPED else (a, b)
        for worker in order:
            worker.tries("the end")  # it may have to wait for the other one's transaction
        for worker in order:
            worker.finishes()
        assert race.balance() == 130
        assert race.kept()


@pytest.mark.parametrize(("slug", "store"), each(WRONG), indirect=["store"])
def test_loses_the_first_write(slug: str, store: str) -> None:
    with Race(slug, store=store) as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("think")
        b.runs_to("think")
        a.finishes()
        b.finishes()
        assert race.balance() == 120
        assert_lost(race, 10, by="B")
