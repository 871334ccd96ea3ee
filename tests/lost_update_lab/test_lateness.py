"""No worker is later than the slack without a pause, and a pause is one only where time passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import virtual_clock
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]
PAUSE = frozenset({Fault.PAUSE})


def beside_a_thread(own: bank.Bank, amount: int) -> str:
    """A right deposit, while another thread of the same worker waits: the only timer that there is."""
    done = threading.Event()
    other = threading.Thread(target=done.wait, args=(10.0,))
    other.start()
    bank.select_for_update(own, amount)
    done.set()
    other.join()
    return "ok"


def test_no_pause_where_only_the_timers_of_the_paused_are_left(explore: Explore) -> None:
    result = explore(beside_a_thread, faults=1, kinds=PAUSE)
    assert (result.worst, result.exhausted, result.cause) == (UNBROKEN, True, "")


def due_one_after_the_other(own: bank.Bank, amount: int) -> str:
    """A is due at once, beside a thread that wakes a little later than the slack; B is due in between. A lease of 5 s
    is the timer after that."""
    if amount == 20:
        own.redis.set("lease", "B", px=5_000)
        time.sleep(0.05)
        own.redis.get("lease")
        return bank.select_for_update(own, amount)
    other = threading.Thread(target=time.sleep, args=(0.12,))
    other.start()
    own.redis.get("lease")
    bank.select_for_update(own, amount)
    other.join()
    return "ok"


@pytest.mark.deep
def test_a_pause_of_one_makes_no_other_late(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    """While A is paused, so are A's own timers: the next one is the lease, and B would be 5 s late for it."""
    real, ticks = virtual_clock.tick, 0

    def tick(run: Run) -> None:
        nonlocal ticks
        ticks += 1
        before = [task for task in virtual_clock.ready(run) if task.due is not None]
        real(run)
        slack = run.bounds.slack
        assert [task.name for task in before if (task.due or 0) + slack < run.now] == []

    monkeypatch.setattr(virtual_clock, "tick", tick)
    result = explore(due_one_after_the_other, faults=1, kinds=PAUSE)
    assert (result.worst, result.exhausted, result.cause) == (UNBROKEN, True, "")
    assert ticks, "the control: time did move on"
