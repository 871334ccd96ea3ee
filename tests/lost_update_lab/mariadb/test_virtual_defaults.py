"""A column that a DEFAULT fills by MariaDB's clock: where it may be compared, its times are a part of each state."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lost_update_lab import worker
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

OLD = "SUM({} < UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE)"


def holds_table() -> None:
    shop.ask("DROP TABLE IF EXISTS hold")
    shop.ask("CREATE TABLE hold (at DATETIME(6), made DATETIME(6) NOT NULL DEFAULT UTC_TIMESTAMP(6))")


def holds(after: int) -> None:
    time.sleep(after)
    shop.ask("INSERT INTO hold (at) VALUES (%s)", datetime.now(UTC).replace(tzinfo=None))


def counts_old_ones() -> bool:
    """By the DEFAULT, and by the worker's clock."""
    time.sleep(700)
    ((made, at),) = shop.ask(f"SELECT {OLD.format('made')}, {OLD.format('at')} FROM hold")
    return bool(made == at)


def compares() -> bool:
    time.sleep(700)
    return all(abs(made - at) < timedelta(seconds=10) for made, at in shop.ask("SELECT made, at FROM hold"))


def test_the_times_of_a_default_are_those_of_the_commands(trial: Trial) -> None:
    """It ended as "not repeatable": a command that writes such a time was taken to be the same whenever it comes."""
    agree = lambda ann, bob, counted: counted is not False, "a time went by another clock"
    workers = [worker("Ann", holds, 300), worker("Bob", holds, 300), worker("Carol", counts_old_ones)]
    result = trial(workers, setup=holds_table, invariant=agree, control=False, faults=1)
    assert (result.verdict, result.exhausted, result.cause) == ("kept", True, "")


@pytest.mark.deep
@pytest.mark.parametrize(("fault", "verdict"), [("crashes", "kept"), ("clock_jumps", "violated")])
def test_a_worker_compares_them_with_its_own_clock(trial: Trial, fault: str, verdict: str) -> None:
    agree = lambda ann, counted: counted is not False, "a time went by another clock"
    workers = [worker("Ann", holds, 300), worker("Carol", compares)]
    result = trial(workers, setup=holds_table, invariant=agree, control=False, **{fault: 1})
    assert (result.verdict, result.exhausted) == (verdict, True)


def deposits_table() -> None:
    shop.ask("DROP TABLE IF EXISTS deposit, closing")
    for table in ("deposit", "closing"):
        shop.ask(f"CREATE TABLE {table} (amount INT, made DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6))")


def deposits() -> None:
    shop.ask("INSERT INTO deposit (amount) VALUES (10)")


def closes() -> None:
    ((total,),) = shop.ask("SELECT COALESCE(SUM(amount), 0) FROM deposit")
    shop.ask("INSERT INTO closing (amount) VALUES (%s)", total)


def nothing_is_missing() -> bool:
    """Of two times that are the same, neither is the earlier one, and every closing was right."""
    until = "SELECT COALESCE(SUM(amount), 0) FROM deposit WHERE deposit.made < closing.made"
    return not shop.ask(f"SELECT 1 FROM closing WHERE amount < ({until})")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("first", [deposits, closes])
def test_an_invariant_compares_them(trial: Trial, first: Callable[[], None]) -> None:
    workers = [first, closes if first is deposits else deposits]
    missing = nothing_is_missing, "an earlier deposit is missing"
    result = trial(workers, setup=deposits_table, invariant=missing, control=False)
    assert result.verdict == "violated"
