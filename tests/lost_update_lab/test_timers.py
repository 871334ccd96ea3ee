"""A renewal by a threading.Timer that arms itself again: each renewal is a thread of its own, and yet one goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lost_update_lab.gates.threads import does
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.found import SearchResult
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]
DEATHS = frozenset({Fault.RENEWAL_DIES, Fault.RENEWAL_LIVES})


class Renewed:
    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    def arm(self) -> None:
        self.timer = threading.Timer(3, self.renew)
        self.timer.start()

    def renew(self) -> None:
        if self.bank.redis.pexpire("lock", 10_000):
            self.arm()


@contextmanager
def renewed(bank: Bank) -> Iterator[None]:
    while not bank.redis.set("lock", "taken", nx=True, px=10_000):
        time.sleep(0.5)
    renewal = Renewed(bank)
    renewal.arm()
    yield
    renewal.timer.cancel()
    bank.redis.delete("lock")


def test_a_timer_that_arms_itself_ends_a_search(explore: Explore) -> None:
    """Each renewal was a state of its own: 15 schedules in 30 s. The holder is dead, and its lock lives for ever."""
    result = explore(locked_by(renewed), faults=1, kinds=DEATHS)
    assert (result.cause, result.exhausted) == ("", True)
    assert (result.under(None), result.under(Fault.RENEWAL_LIVES)) == (UNBROKEN, "stalled")


def test_without_that_it_has_no_end(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(Task, "goes_on_as_another", property(lambda task: False))
    assert not explore(locked_by(renewed), faults=1, kinds=DEATHS, budget=3).exhausted


def test_what_a_thread_does() -> None:
    """Two that wait for different things are two."""
    one, other = Renewed.__new__(Renewed), Renewed.__new__(Renewed)
    timers = [threading.Timer(1, each) for each in (one.renew, other.renew, one.arm)]
    threads = [threading.Thread(target=each) for each in (one.renew, one.arm)]
    assert does(timers[0]) is does(timers[1]) is does(threads[0])
    assert does(timers[2]) is does(threads[1]) is not does(timers[0])
    assert does(threading.Thread()) is does(threading.Thread())
