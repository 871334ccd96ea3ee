"""Leases in rows under the public API: PostgreSQL's clock is virtual there too, and the result says how."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from lost_update_lab import Result

Trial = Callable[..., Result]
TAKE = "UPDATE till SET owner = %s, deadline = now() + interval '10 s' WHERE deadline < now() RETURNING owner"


def a_till() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        db.execute("CREATE TABLE till (name text PRIMARY KEY, owner text, deadline timestamptz, money int)")
        db.execute("INSERT INTO till VALUES ('one', NULL, 'epoch', 0)")


def pay(work: float) -> None:
    """Takes the lease, and puts in what it has counted and one more."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        while not db.execute(TAKE, ["me"]).fetchone():
            time.sleep(5)
        money = db.execute("SELECT money FROM till").fetchone()
        assert money
        time.sleep(work)
        db.execute("UPDATE till SET money = %s", [money[0] + 1])
        db.execute("UPDATE till SET deadline = now() WHERE owner = 'me'")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("work", "verdict"), [(9, "kept"), (11, "violated")])
def test_a_lease_holds_as_long_as_it_says(trial: Trial, work: float, verdict: str) -> None:
    result = trial([(pay, work)] * 2, setup=a_till)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    assert "the clock of postgres is virtual: shadowed functions answer in its place" in result.notes


FREE = "UPDATE till SET owner = %s, deadline = %s WHERE deadline < %s RETURNING money"


def pay_if_free(minutes: float) -> str:
    """The lease goes by the callers' own clocks, and nobody waits for it: nothing on the server ends."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        now = datetime.now(UTC)
        found = db.execute(FREE, ["me", now + timedelta(minutes=minutes), now]).fetchone()
        if not found:
            return "busy"
        db.execute("UPDATE till SET money = %s", [found[0] + 1])
    return "paid"


def nothing_is_lost(ann: object, bob: object) -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        (money,) = db.execute("SELECT money FROM till").fetchone() or (0,)
    return money >= [ann, bob].count("paid")


@pytest.mark.deep
@pytest.mark.parametrize(("minutes", "verdict"), [(0.5, "violated"), (30, "violated"), (24 * 60, "kept")])
def test_a_pause_may_last_longer_than_a_lease_that_nobody_waits_for(
    trial: Trial, minutes: float, verdict: str
) -> None:
    workers = [(pay_if_free, minutes)] * 2
    result = trial(workers, setup=a_till, invariant=nothing_is_lost, pauses=1, control=False)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    assert trial(workers, setup=a_till, invariant=nothing_is_lost, control=False).kept


STALE = "owner IS NULL OR deadline < now() - interval '{}'"
CLAIM = f"UPDATE till SET owner = %s, deadline = now() WHERE {STALE} RETURNING money"


def pay_if_stale(me: str, age: str) -> str:
    """The row says when somebody was last heard of, and only the command how long that counts."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        if not (found := db.execute(CLAIM.format(age), [me]).fetchone()):
            return "busy"
        db.execute("UPDATE till SET money = %s", [found[0] + 1])
    return "paid"


@pytest.mark.deep
@pytest.mark.parametrize(("age", "verdict"), [("30 s", "violated"), ("1 day", "kept")])
def test_a_pause_may_last_longer_than_a_sign_of_life_counts(trial: Trial, age: str, verdict: str) -> None:
    workers = [(pay_if_stale, "Ann", age), (pay_if_stale, "Bob", age)]
    result = trial(workers, setup=a_till, invariant=nothing_is_lost, pauses=1, control=False)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
