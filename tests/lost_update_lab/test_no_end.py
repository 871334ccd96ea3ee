"""A schedule without an end, and a search without one: both end, and neither is called exhausted."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest

from locks.reentrant import ReentrantLock
from locks.watchdog_lua import WatchdogLuaLock
from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.bounds import MS, SECOND, Fault
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.schedule import decisions
from lost_update_lab.schedule.schedule_id import roughly
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def for_ever(own: bank.Bank, amount: int) -> str:
    own.redis.set("session", 1, ex=3600)
    while True:
        own.redis.incr("count")


def test_the_budget_ends_a_search_inside_a_schedule(explore: Explore) -> None:
    begun = time.monotonic()
    result = explore(for_ever, budget=1.0)
    assert not result.exhausted
    assert result.cause == "the budget of 1 s ended"
    assert "--budget" in result.remedy
    assert time.monotonic() - begun < 30


def test_without_a_budget_the_length_of_a_schedule_is_bounded(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_DECISIONS", 200)
    result = explore(for_ever)
    assert not result.exhausted
    assert "did not end within 200 decisions; last: INCRBY" in result.cause
    assert "until the longest lease could end, that of session after 3600 s" in result.cause


def spins(own: bank.Bank, amount: int) -> str:
    """A poll without a sleep: nobody else goes on meanwhile, and no time passes."""
    while not own.redis.set("lock", 1, nx=True, px=10_000):
        pass
    done = bank.add(own, amount)
    own.redis.delete("lock")
    return done


def test_a_loop_that_never_waits_is_told(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MOST_AT_ONCE", 100)
    result = explore(spins, faults=1, kinds=frozenset({Fault.CRASH}))
    assert not result.exhausted
    assert "sends the same commands again and again, and no time passes; last: SET lock" in result.cause
    assert "sleep" in result.remedy


def watchdog(own: bank.Bank) -> WatchdogLuaLock:
    return WatchdogLuaLock("lock", redis=own.redis)


@pytest.mark.deep
def test_an_orphan_that_renews_for_ever_is_a_stall(harness: Callable[..., Harness]) -> None:
    """Its rounds differ, each sees another PTTL: yet nothing goes on any more."""
    with_an_orphan = roughly([Transition(Kind.RENEWAL_LIVES, "A")])
    found, run = play(harness(bank.locked_by(watchdog), faults=1, patience=10 * SECOND), {}, with_an_orphan)
    assert (found.word, found.faults) == ("stalled", (Fault.RENEWAL_LIVES,))
    assert run.decisions < 500


def renewed(own: bank.Bank) -> ReentrantLock:
    """Its renewal is the same each time: a command without a look, and the same reply."""
    return ReentrantLock("lock", redis=own.redis, lease=30.0)


@pytest.mark.deep(short=False)
def test_a_renewal_is_not_slept_through(harness: Callable[..., Harness]) -> None:
    """It would be a poll in vain, were it not for the lease, which ends without it."""
    with_an_orphan = roughly([*[Transition(Kind.STEP, "A")] * 2, Transition(Kind.RENEWAL_LIVES, "A")])
    known = harness(bank.locked_by(renewed), faults=1)
    found, run = play(known, {}, with_an_orphan)
    assert (found.word, found.faults) == ("stalled", (Fault.RENEWAL_LIVES,))
    assert len(run.learned) == 2, "the waiter's polls, and the renewals, were watched for more than a lease"
    again, _ = play(known, run.learned, with_an_orphan)
    assert (again.word, again.faults) == ("stalled", (Fault.RENEWAL_LIVES,))


def by_a_row(own: bank.Bank, amount: int) -> str:
    """Each look at the lock begins with a BEGIN, which no other worker sees."""
    while True:
        with own.sql.transaction():
            if own.sql.execute("UPDATE account SET version = 1 WHERE id = 2 AND version = 0").rowcount:
                break
        time.sleep(0.5)
    done = bank.add(own, amount)
    own.sql.execute("UPDATE account SET version = 0 WHERE id = 2")
    return done


@pytest.mark.deep
def test_a_pause_ends_also_where_a_waiter_stands_before_a_begin(explore: Explore) -> None:
    result = explore(by_a_row, faults=1, kinds=frozenset({Fault.PAUSE}))
    assert result.fired == {Fault.PAUSE}
    assert (result.worst, result.exhausted) == ("unbroken", True)


def counted(own: bank.Bank, amount: int) -> str:
    """Each attempt is counted, so each changes something."""
    while not own.redis.set("lock", amount, nx=True, px=10_000):
        own.redis.incr("attempts")
        time.sleep(0.1)
    done = bank.add(own, amount)
    own.redis.delete("lock")
    return done


def test_a_waiter_with_a_hundred_attempts_waits_for_the_lease_of_a_dead_holder(
    harness: Callable[..., Harness],
) -> None:
    dies_inside = roughly([Transition(Kind.STEP, "A"), Transition(Kind.CRASH, "A")])
    found, run = play(harness(counted, faults=1), {}, dies_inside)
    assert run.now > 9_000_000
    assert (found.word, found.faults) == ("unbroken", (Fault.CRASH,))


def nowait(own: bank.Bank, amount: int) -> str:
    """Told at once that another has the row, it looks again after 10 ms, thirty times."""
    for _ in range(30):
        with suppress(psycopg.errors.LockNotAvailable), own.sql.transaction():
            own.sql.execute("SELECT 1 FROM account WHERE id = 1 FOR UPDATE NOWAIT")
            return bank.add(own, amount)
        time.sleep(0.01)
    raise bank.GaveUp


@pytest.mark.deep
def test_the_first_poll_of_a_pause_may_leave_all_as_it_was_before_the_pause(explore: Explore) -> None:
    """Until the pause each look counted, and after it they are polls in vain: the first of them comes back to a moment
    at which none had been folded yet."""
    result = explore(nowait, faults=1, kinds=frozenset({Fault.PAUSE}), slack=20 * MS)
    assert (result.worst, result.exhausted, result.cause) == ("stalled", True, "")
