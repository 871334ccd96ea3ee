"""How far a search looks ahead: a waiter that does something else after half a minute is seen doing it.

A search that ended each pause after 10 s of polls in vain, and its referee with it, called all of these exhausted
without a loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from locks.setnx import SetnxLock
from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.bounds import SECOND, Fault, Reduction
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.schedule.schedule_id import roughly
from lost_update_lab.search.poll_calibration import calibrate_polls
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]
PAUSE = frozenset({Fault.PAUSE})
SECONDS = 30


def by_its_own_clock(poll: float) -> Callable[[bank.Bank], Any]:
    """A waiter enters after half a minute."""

    @contextmanager
    def lock(own: bank.Bank) -> Iterator[None]:
        begun = time.monotonic()
        while not own.redis.setnx("lock", 1) and time.monotonic() - begun < SECONDS:
            time.sleep(poll)
        yield
        own.redis.delete("lock")

    return lock


def by_its_tries(poll: float, tries: int = 0) -> Callable[[bank.Bank], Any]:
    """A waiter enters after so many tries."""

    @contextmanager
    def lock(own: bank.Bank) -> Iterator[None]:
        for _ in range(tries or round(SECONDS / poll)):
            if own.redis.setnx("lock", 1):
                break
            time.sleep(poll)
        yield
        own.redis.delete("lock")

    return lock


def by_the_time_in_the_value(poll: float) -> Callable[[bank.Bank], Any]:
    """The lease is a time of the client's clock, so no two attempts are the same."""

    @contextmanager
    def lock(own: bank.Bank) -> Iterator[None]:
        while not own.redis.setnx("lock", repr(time.time() + SECONDS)):
            if float(own.redis.get("lock") or 0) < time.time():
                own.redis.set("lock", repr(time.time() + SECONDS))
                break
            time.sleep(poll)
        yield
        own.redis.delete("lock")

    return lock


@pytest.mark.deep
@pytest.mark.parametrize("kind", [by_its_own_clock, by_its_tries])
def test_a_pause_is_long_enough_for_a_waiter_that_goes_in_after_half_a_minute(
    explore: Explore, kind: Callable[[float], Any]
) -> None:
    result = explore(bank.locked_by(kind(2.0)), faults=1, kinds=PAUSE)
    assert (result.worst, result.exhausted) == ("lost", True)


@pytest.mark.deep
def test_a_hundred_attempts_that_change_nothing_end_no_pause(harness: Callable[..., Harness]) -> None:
    steps = [Transition(Kind.STEP, who) for who in "AAABBB"]  # A has read; B has found the lock taken
    deposit = bank.locked_by(by_the_time_in_the_value(0.2))
    found, _ = play(harness(deposit, faults=1), {}, roughly([*steps, Transition(Kind.PAUSE, "A")]))
    assert (found.word, found.faults) == ("lost", (Fault.PAUSE,))


@pytest.mark.deep
@pytest.mark.parametrize(("work", "seconds"), [(20.0, 15.0), (100.0, 95.0)])
def test_a_waiter_that_counts_its_tries_enters_before_a_long_section_ends(
    explore: Explore, work: float, seconds: float
) -> None:
    """Polls that were slept through are tries that were not made: a waiter that sleeps longer than it was watched
    goes in too late."""
    result = explore(bank.locked_by(by_its_tries(1.0, round(seconds)), work=work))
    assert (result.worst, result.exhausted) == ("lost", True)


def at_leisure(own: bank.Bank, amount: int) -> str:
    """A says that it has begun, and adds in one command, at once. B comes half a minute later, reads, and writes: right
    as long as A is not late."""
    if amount == 20 and own.redis.get("A has begun"):
        time.sleep(SECONDS)
        return bank.add(own, amount)
    own.redis.set("A has begun", 1)
    own.sql.execute("UPDATE account SET balance = balance + %s WHERE id = 1", [amount])
    return "ok"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("reduction", list(Reduction))
def test_a_pause_may_end_between_two_steps_that_only_read(explore: Explore, reduction: Reduction) -> None:
    """While A is paused nothing changes but the time: B wakes, reads 100, and A goes on before B writes."""
    assert explore(at_leisure).worst == UNBROKEN, "the control: nobody is late"
    result = explore(at_leisure, faults=1, kinds=PAUSE, reduction=reduction)
    assert (result.worst, result.exhausted) == ("lost", True)


@pytest.mark.deep
def test_polls_are_known_for_as_long_as_two_pauses_last(explore: Explore) -> None:
    """Beyond what was watched, a waiter's polls were executed, and led to a moment that came again on its own way."""
    deposit = bank.locked_by(lambda own: SetnxLock("lock", redis=own.redis, poll=0.05))
    result = explore(deposit, faults=2, kinds=PAUSE, patience=SECOND)
    assert (result.worst, result.exhausted, result.cause) == (UNBROKEN, True, "")


@contextmanager
def a_time_for_each_attempt(own: bank.Bank) -> Iterator[None]:
    while not own.redis.set("lock", str(time.monotonic()), nx=True):
        time.sleep(1)
    yield
    own.redis.delete("lock")


@pytest.mark.parametrize(
    ("lock", "learns"), [(a_time_for_each_attempt, False), (by_its_tries(2.0, 100), True)]
)
def test_attempts_of_which_each_is_another_one_are_watched_once(
    harness: Callable[..., Harness], lock: Callable[[bank.Bank], Any], learns: bool
) -> None:
    """None of them will be slept through, wherever the holder is paused: watching on would take a minute."""
    known = harness(bank.locked_by(lock))
    assert bool(calibrate_polls(known)) == learns
    assert known.runs == 4, "two to get warm, one for each worker that stands still"
