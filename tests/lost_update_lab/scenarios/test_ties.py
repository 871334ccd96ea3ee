"""Clocks stand still between commands: where that breaks right code, a note says so."""

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
    sql.execute("CREATE TABLE entry (id serial PRIMARY KEY, balance int, made timestamptz)")
    sql.execute("INSERT INTO entry (balance, made) VALUES (100, %s)", [datetime.now(UTC)])


def posts(order: str, sql: Any) -> None:
    """A running balance, under a lock."""
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        (last,) = sql.execute(f"SELECT balance FROM entry ORDER BY {order} LIMIT 1").fetchone()
        sql.execute("INSERT INTO entry (balance, made) VALUES (%s, %s)", [last + 1, datetime.now(UTC)])


@pytest.mark.parametrize(("order", "noted"), [("made DESC, id", True), ("id DESC", False)])
def test_a_tie_is_told(trial: Trial, order: str, noted: bool) -> None:
    """Three postings in a row have one time, and the third goes on from the first one's balance."""
    lost = lambda *all_: False, "an entry is lost"
    result = trial([(posts, order)] * 3, setup=ledger, control=False, invariant=lost)
    assert result.verdict == "violated"
    assert (TIE.format("made") in result.notes) == noted
