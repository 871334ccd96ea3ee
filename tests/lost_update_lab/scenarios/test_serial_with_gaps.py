"""Without an invariant: where a lease ended between two callers, the serial orders in which it ends there are right.

Where it ended while a caller was under way they are not. Else a lock whose lease is over would look like one that was
given back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.serial import Serial
from lost_update_lab.schedule import state

Trial = Callable[..., Result]


def by_one_command(redis: Any) -> str:
    return "allowed" if redis.set("calls", 1, nx=True, ex=60) else "later"


COUNT = "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], 60) end return n"


def by_a_script(redis: Any) -> str:
    return "allowed" if redis.eval(COUNT, 1, "calls") == 1 else "later"


def after_a_look(redis: Any) -> str:
    """It may be paused between the look and the count."""
    if redis.get("blocked"):
        return "blocked"
    return by_a_script(redis)


def by_multi(redis: Any) -> str:
    with redis.pipeline() as pipe:
        count, _ = pipe.incr("calls").expire("calls", 60, nx=True).execute()
    return "allowed" if count == 1 else "later"


@pytest.mark.deep
@pytest.mark.parametrize("allow", [by_one_command, by_a_script, after_a_look, by_multi])
def test_a_right_rate_limiter_is_kept(trial: Trial, allow: Callable[..., str]) -> None:
    for faults in ({}, {"pauses": 1}):
        result = trial([allow, allow], control=False, **faults)
        assert (result.verdict, result.exhausted) == ("kept", True), str(result)
        assert any("A, then the end of the lease of calls, then B" in note for note in result.notes)


def in_two_commands(redis: Any) -> str:
    count = redis.incr("calls")
    if count == 1:
        redis.expire("calls", 60)
    return "allowed" if count == 1 else "later"


@pytest.mark.deep
def test_a_rate_limiter_whose_expire_gets_lost_is_violated(trial: Trial) -> None:
    result = trial([in_two_commands] * 2, control=False, crashes=1)
    assert result.verdict == "violated", str(result)


def stolen_while_it_begins(redis: Any) -> str:
    """A worker that finds the entry of one that has just begun takes its place."""
    if not redis.set("calls", "begins", nx=True, ex=60):
        if redis.get("calls") != b"begins":
            return "later"
        redis.delete("calls")
        redis.set("calls", "begins", nx=True, ex=60)
    redis.set("calls", "in", xx=True, ex=60)
    return "allowed"


def count(redis: Any) -> None:
    redis.incr("others")


@pytest.mark.deep
def test_what_happened_before_a_lease_ended_is_not_excused_by_its_end(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One schedule is right and the other is wrong, and they leave the same."""
    result = trial([stolen_while_it_begins] * 2, control=False)
    assert (result.verdict, result.exhausted) == ("violated", True)
    monkeypatch.setattr(Serial, "fits", lambda serial, others: True)
    assert trial([stolen_while_it_begins] * 2, control=False).kept


@pytest.mark.deep
def test_a_state_knows_which_leases_ended_between_workers(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that, what comes after the wrong schedule is not explored: it was, after the right one."""
    workers = [stolen_while_it_begins, stolen_while_it_begins, count]
    known, moment = trial(workers, control=False), state.moment
    monkeypatch.setattr(state, "moment", lambda world: replace(moment(world), gaps=()))
    assert trial(workers, control=False).schedules < known.schedules


def an_account() -> Callable[[], None]:
    def set_up() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as db:
            db.execute("CREATE TABLE account (id int PRIMARY KEY, paid int, owner text, until timestamptz)")
            db.execute("INSERT INTO account VALUES (1, 0, NULL, 'epoch')")

    return set_up


def pay_under_a_lease(sql: Any, redis: Any) -> None:
    while not redis.set("lock", 1, nx=True, px=5000):
        time.sleep(1)
    paid = sql.execute("SELECT paid FROM account").fetchone()[0]
    sql.execute("UPDATE account SET paid = %s", [paid + 1])
    redis.delete("lock")


@pytest.mark.deep
def test_a_lock_with_a_lease_and_no_fencing_is_violated(trial: Trial) -> None:
    assert trial([pay_under_a_lease] * 2, setup=an_account()).kept
    result = trial([pay_under_a_lease] * 2, setup=an_account(), pauses=1)
    assert (result.verdict, result.schedule and result.schedule.faults) == ("violated", ("pause",))


def pay_once(sql: Any, redis: Any) -> str:
    if not redis.set("key-of-the-request", 1, nx=True, ex=60):
        return "paid before"
    sql.execute("UPDATE account SET paid = paid + 1")
    return "paid"


@pytest.mark.deep
def test_a_lease_that_ends_while_its_caller_is_under_way_excuses_nothing(trial: Trial) -> None:
    """The key is gone before the first payment is made, so the second request is no late one."""
    assert trial([pay_once] * 2, setup=an_account(), control=False).kept
    result = trial([pay_once] * 2, setup=an_account(), control=False, pauses=1)
    assert result.verdict == "violated", str(result)
    assert result.schedule
    assert "it matches A, then the end of the lease of key-of-the-request, then B" in str(
        result.schedule.sentences
    )


def hold(sql: Any) -> str:
    query = "UPDATE account SET until = now() + interval '10 s' WHERE until < now() RETURNING id"
    return "held" if sql.execute(query).fetchone() else "taken"


def hold_in_two_commands(sql: Any) -> str:
    if not sql.execute("SELECT id FROM account WHERE until < now()").fetchone():
        return "taken"
    sql.execute("UPDATE account SET until = now() + interval '10 s'")
    return "held"


def hold_in_a_transaction(sql: Any) -> str:
    """In a serial order its now(), which is that of its BEGIN, comes after the other one's COMMIT."""
    with sql.transaction():
        return hold(sql)


def test_a_serial_order_begins_a_transaction_when_its_worker_is_next(trial: Trial) -> None:
    result = trial([hold_in_a_transaction] * 2, setup=an_account(), control=False)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)
    assert any("A, then the end of the lease of account[1].until, then B" in note for note in result.notes)


@pytest.mark.deep
@pytest.mark.parametrize(("take", "verdict"), [(hold, "kept"), (hold_in_two_commands, "violated")])
def test_a_deadline_in_a_row(trial: Trial, take: Callable[..., str], verdict: str) -> None:
    for faults in ({}, {"pauses": 1}):
        result = trial([take, take], setup=an_account(), control=False, **faults)
        assert (result.verdict, result.exhausted) == (verdict, True), str(result)


def a_coupon() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        db.execute("CREATE TABLE coupon (uses int, ends float)")
        db.execute("INSERT INTO coupon VALUES (1, %s)", [time.time() + 1800])


def redeem_if_it_has_not_ended(sql: Any) -> str:
    (ends,) = sql.execute("SELECT ends FROM coupon").fetchone()
    if time.time() > ends:
        return "ended"
    query = "UPDATE coupon SET uses = uses - 1 WHERE uses > 0 RETURNING uses"
    return "redeemed" if sql.execute(query).fetchone() else "used"


def test_an_hour_may_pass_where_only_clocks_show_it(trial: Trial) -> None:
    result = trial([redeem_if_it_has_not_ended] * 2, setup=a_coupon, control=False, pauses=1)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)
    assert any("A, then an hour, then B" in note for note in result.notes)
