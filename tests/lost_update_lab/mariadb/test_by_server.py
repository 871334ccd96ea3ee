"""Columns that a DEFAULT fills by MariaDB's clock: what others write there means something."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from lost_update_lab import worker
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

COLUMNS = {
    "a word": ("VARCHAR(20) DEFAULT 'on_time'", ("on_time", "late", "cancelled")),
    "the clock": ("DATETIME DEFAULT CURRENT_TIMESTAMP", ("2020-01-01", "2020-01-02", "2040-01-01")),
}


def one_row(column: str, opening: str) -> None:
    shop.ask("DROP TABLE IF EXISTS one")
    shop.ask(f"CREATE TABLE one (id INT PRIMARY KEY, said {column})")
    shop.ask("INSERT INTO one VALUES (1, %s)", opening)


def says(what: str) -> None:
    shop.ask("UPDATE one SET said = %s", what)


def is_other_than(last: str) -> bool:
    return bool(shop.ask("SELECT said <> %s FROM one", last)[0][0])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("column", COLUMNS)
def test_two_states_that_differ_there_are_two(trial: Trial, column: str) -> None:
    declared, (opening, first, second) = COLUMNS[column]
    workers = [worker("Ann", says, first), worker("Bob", says, second)]
    setup: Callable[[], None] = partial(one_row, declared, opening)
    for last in (first, second):
        invariant = partial(is_other_than, last)
        result = trial(workers, setup=setup, invariant=invariant, control=False)
        assert result.verdict == "violated", last


def stamps() -> None:
    shop.ask("UPDATE one SET said = DEFAULT")


def test_a_time_of_its_own_clock_means_nothing(trial: Trial) -> None:
    setup = partial(one_row, *("DATETIME DEFAULT CURRENT_TIMESTAMP", "2020-01-01"))
    result = trial([worker("Ann", stamps), worker("Bob", stamps)], setup=setup, control=False)
    assert result.verdict == "kept"
    assert any("has written it: one.said" in note for note in result.notes)
