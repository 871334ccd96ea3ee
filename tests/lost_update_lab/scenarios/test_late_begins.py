"""A worker that has only sent BEGIN, or SET, has done nothing that others can see, and may still be late. Its clock, or
the server's, tells when that was: a lease may have ended by then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import enabled
from lost_update_lab.search import search

Trial = Callable[..., Result]
TAKE = "UPDATE hold SET ends = now() + interval '30 s' WHERE ends < now()"
TAKE_BY_MINE = "UPDATE hold SET ends = %s WHERE ends < %s"


def connect(**how: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ["DATABASE_URL"], **how)


def an_account() -> None:
    with connect() as db:
        db.execute("CREATE TABLE hold (ends timestamptz)")
        db.execute("INSERT INTO hold VALUES ('epoch')")
        db.execute("CREATE TABLE account (balance int)")
        db.execute("INSERT INTO account VALUES (100)")


def by_the_servers_clock() -> int:
    """psycopg sends BEGIN before the command, and now() stands still from there on."""
    with connect() as db:
        return db.execute(TAKE).rowcount


def by_its_own_clock(db: psycopg.Connection[Any]) -> int:
    now = datetime.now(UTC)
    return db.execute(TAKE_BY_MINE, [now + timedelta(seconds=30), now]).rowcount


def behind_a_begin() -> int:
    with connect(autocommit=True) as db, db.transaction():
        return by_its_own_clock(db)


def behind_a_set() -> int:
    with connect(autocommit=True) as db:
        db.execute("SET application_name = 'a teller'")
        return by_its_own_clock(db)


def withdraw(take: Callable[[], int], work: float = 60) -> bool:
    if not take():
        return False
    with connect(autocommit=True) as db:
        (balance,) = db.execute("SELECT balance FROM account").fetchone() or (0,)
        time.sleep(work)
        db.execute("UPDATE account SET balance = %s", [balance - 10])
    return True


def nothing_is_lost(ann: bool, bob: bool) -> bool:
    with connect() as db:
        return db.execute("SELECT balance FROM account").fetchone() == (100 - 10 * (ann + bob),)


TAKES = [behind_a_set, by_the_servers_clock, behind_a_begin]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("take", TAKES)
def test_who_has_only_begun_may_come_after_the_lease_has_ended(
    trial: Trial, take: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"setup": an_account, "invariant": nothing_is_lost, "control": False}
    result = trial([(withdraw, take)] * 2, **how)
    assert (result.verdict, result.exhausted) == ("violated", True), str(result)
    assert trial([(withdraw, take, 20)] * 2, **how).kept
    monkeypatch.setattr(enabled, "_goes_first", lambda world, task: bool(task.op and task.op.local))
    monkeypatch.setattr(Run, "begin_to_look", lambda run, task, clock: None)
    assert trial([(withdraw, take)] * 2, **how).kept  # as it was


def looks_first(take: Callable[[psycopg.Connection[Any]], int]) -> bool:
    """Has it found the hold free, and has it got it then? It has begun with the look, so only a pause makes it late."""
    with connect(autocommit=True) as db:
        free = db.execute("SELECT FROM hold WHERE ends = 'epoch'").fetchone()
        with db.transaction():
            return take(db) == 1 and free is not None


def by_now(db: psycopg.Connection[Any]) -> int:
    return db.execute(TAKE).rowcount


def takes_it_first() -> bool:
    with connect(autocommit=True) as db:
        return db.execute(f"{TAKE} AND ends = 'epoch'").rowcount == 1


def only_one_got_it(ann: bool, bob: bool) -> bool:
    return not (ann and bob)


@pytest.mark.deep
@pytest.mark.parametrize("take", [by_now, by_its_own_clock])
def test_a_pause_may_come_before_the_begin(
    trial: Trial, take: Callable[[psycopg.Connection[Any]], int]
) -> None:
    """It looks, is paused for longer than the other one's hold, and then begins."""
    workers, how = [(looks_first, take), takes_it_first], {"setup": an_account, "invariant": only_one_got_it}
    assert trial(workers, **how, control=False).kept
    result = trial(workers, **how, control=False, pauses=1)
    assert (result.verdict, result.exhausted) == ("violated", True), str(result)


def takes_it_and_rolls_back() -> int:
    """As Django does: it rolls back on a connection that it has lost, and goes on with another one."""
    db = connect()
    try:
        found = db.execute(TAKE).rowcount
        db.commit()
    except psycopg.OperationalError:
        with suppress(psycopg.OperationalError):
            db.rollback()
        found = by_the_servers_clock()
    return found


@pytest.mark.deep
def test_a_session_that_was_lost_is_inside_of_no_transaction(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory it was, and its BEGIN stayed a part of the state: such a schedule came to something else when it was
    executed, and the search ended with "not repeatable"."""
    monkeypatch.setattr(search, "LOOK_EVERY", 1)  # each schedule is executed, too
    workers = [(withdraw, takes_it_and_rolls_back, 1)] * 2
    result = trial(workers, setup=an_account, invariant=lambda: True, control=False, lost_replies=1)
    assert not result.cause, result
    assert result.exhausted
