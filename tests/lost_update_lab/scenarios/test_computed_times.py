"""A time that is computed from the clock counts, as long as no time passes: all clocks show the same until then."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lost_update_lab import Result

Trial = Callable[..., Result]
MONTH = timedelta(days=30)


def lapsed(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS subscription")
    sql.execute("CREATE TABLE subscription (id serial PRIMARY KEY, ends timestamptz, more jsonb)")
    sql.execute("INSERT INTO subscription (ends) VALUES (%s)", [datetime.now(UTC) - timedelta(days=7)])


def extends(lock: str, sql: Any) -> None:
    with sql.transaction():
        (ends,) = sql.execute(f"SELECT ends FROM subscription {lock}").fetchone()
        ends = max(ends, datetime.now(UTC)) + MONTH
        sql.execute("UPDATE subscription SET ends = %s", [ends])


def extends_in_json(lock: str, sql: Any) -> None:
    with sql.transaction():
        (more,) = sql.execute(f"SELECT more FROM subscription {lock}").fetchone()
        ends = (datetime.fromisoformat(more["ends"]) if more else datetime.now(UTC)) + MONTH
        sql.execute("UPDATE subscription SET more = %s", [json.dumps({"ends": ends.isoformat()})])


def books(lock: str, sql: Any) -> None:
    """The next slot of ten minutes."""
    with sql.transaction():
        if lock:
            sql.execute("SELECT pg_advisory_xact_lock(1)")
        (last,) = sql.execute("SELECT max(ends) FROM subscription").fetchone()
        last = max(last, datetime.now(UTC))
        sql.execute("INSERT INTO subscription (ends) VALUES (%s)", [last + timedelta(minutes=10)])


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(("lock", "verdict"), [("", "violated"), ("FOR UPDATE", "kept")])
@pytest.mark.parametrize("operation", [extends, extends_in_json, books])
def test_a_month_is_lost(trial: Trial, operation: Callable[..., None], lock: str, verdict: str) -> None:
    """A time of the run's own making was not compared, however far it was off, and no note said so."""
    result = trial([(operation, lock)] * 2, setup=lapsed, control=False)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    assert "then an hour" not in str(result)
