"""Operations in a row write different times, as real clocks would: else right code that orders rows by them breaks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.ties import TIE

Trial = Callable[..., Result]


def ledger(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS entry")
    sql.execute("CREATE TABLE entry (id serial PRIMARY KEY, amount int, balance int, made timestamptz)")
    sql.execute("INSERT INTO entry (amount, balance, made) VALUES (100, 100, %s)", [datetime.now(UTC)])


def posts(lock: bool, cut: bool, order: str, sql: Any) -> None:
    """A running balance. `cut`: its times are whole seconds."""
    with sql.transaction():
        if lock:
            sql.execute("SELECT pg_advisory_xact_lock(1)")
        (last,) = sql.execute(f"SELECT balance FROM entry ORDER BY {order} LIMIT 1").fetchone()
        made = datetime.now(UTC)
        given = [1, last + 1, made.replace(microsecond=0) if cut else made]
        sql.execute("INSERT INTO entry (amount, balance, made) VALUES (%s, %s, %s)", given)


def adds_up(sql: Any) -> bool:
    latest = sql.execute("SELECT balance FROM entry ORDER BY made DESC LIMIT 1").fetchone()
    return bool(latest == sql.execute("SELECT sum(amount)::int FROM entry").fetchone())


def account(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (balance int, updated timestamptz)")
    sql.execute("INSERT INTO account VALUES (100, %s)", [datetime.now(UTC)])


def deposits(sql: Any) -> None:
    """Optimistic locking by the time of the last change."""
    while True:
        balance, updated = sql.execute("SELECT balance, updated FROM account").fetchone()
        given = [balance + 1, datetime.now(UTC), updated]
        if sql.execute("UPDATE account SET balance = %s, updated = %s WHERE updated = %s", given).rowcount:
            return


BY_TIME = "made DESC, id"
POSTS = posts, True, False, BY_TIME
LAW = adds_up, "the latest balance is not the sum of all entries"


@pytest.mark.parametrize("workers", [2, 3])
def test_the_latest_row_is_the_one_that_was_written_last(trial: Trial, workers: int) -> None:
    assert trial([POSTS] * workers, setup=ledger, control=False, invariant=LAW).verdict == "kept"


def test_a_time_is_a_version(trial: Trial) -> None:
    result = trial([(deposits,)] * 3, setup=account, control=False)
    assert (result.verdict, result.notes) == ("kept", ())


def test_without_the_lock_an_entry_is_lost(trial: Trial) -> None:
    result = trial([(posts, False, False, BY_TIME)] * 2, setup=ledger, control=False, invariant=LAW)
    assert (result.verdict, result.notes) == ("violated", ())


@pytest.mark.parametrize(("order", "noted"), [(BY_TIME, True), ("id DESC", False)])
def test_a_time_that_is_cut_to_the_second_is_a_tie(trial: Trial, order: str, noted: bool) -> None:
    """The third posting goes on from the first one's balance. It does so with real clocks too."""
    lost = lambda *all_: False, "an entry is lost"
    result = trial([(posts, True, True, order)] * 3, setup=ledger, control=False, invariant=lost)
    assert result.verdict == "violated"
    assert (TIE.format("made") in result.notes) == noted
