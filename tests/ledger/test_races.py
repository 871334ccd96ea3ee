"""The loss of the strategies that claim nothing, in a race that a test conducts. What is claimed under contention is
raced in tests/contract/test_strategies.py.
"""

from __future__ import annotations

import pytest

from tests.ledger.race import Race
from tests.ledger.race.books import assert_lost

pytestmark = pytest.mark.usefixtures("committed_db")

#: strategies that lose it when both have read before either writes, without any fault
WRONG = {
    "postgres": ["no-lock", "select-for-update-late", "save-all-fields"],
    "redis": ["no-lock"],
    "mariadb": ["no-lock", "select-for-update-late", "save-all-fields", "repeatable-read-innodb"],
}


def each(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(slug, store) for store, slugs in table.items() for slug in slugs]


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
