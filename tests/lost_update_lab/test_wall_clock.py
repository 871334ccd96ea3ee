"""Locks that compare a wall clock with a time in a value: the jumps of that clock are explored, wherever it is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]
JUMPS = frozenset({Fault.CLOCK_JUMP})


@contextmanager
def getset_on_expiry(bank: Bank) -> Iterator[None]:
    """As the page of SETNX had it: a client that finds an expired time takes the lock by GETSET."""
    while not bank.redis.setnx("lock", repr(mine := time.time() + 11)):
        held = bank.redis.get("lock")
        if held and float(held) < time.time():
            mine = time.time() + 11
            if bank.redis.getset("lock", repr(mine)) == held:
                break
        time.sleep(1)
    yield
    if time.time() < mine:
        bank.redis.delete("lock")


@contextmanager
def looks_after_a_lost_reply(bank: Bank) -> Iterator[None]:
    """It looks only after a fault, so earlier runs do not show it."""
    until = None
    while True:
        try:
            if bank.redis.set("lock", 1, nx=True, px=20_000):
                break
        except redis.ConnectionError:
            until = until or time.time() + 30
        if until and time.time() > until:
            break
        time.sleep(1)
    yield
    bank.redis.delete("lock")


def test_a_comparison_with_a_jumping_clock_is_found(explore: Explore) -> None:
    result = explore(locked_by(getset_on_expiry), faults=1, kinds=JUMPS)
    assert (result.cause, result.exhausted) == ("", True)
    assert result.under(None) == UNBROKEN
    assert result.under(Fault.CLOCK_JUMP) == "lost"


@pytest.mark.deep(short=False)
def test_a_clock_that_is_read_only_after_a_fault_is_explored_too(explore: Explore) -> None:
    result = explore(locked_by(looks_after_a_lost_reply), faults=2, kinds=JUMPS | {Fault.LOST_REPLY})
    assert (result.cause, result.exhausted) == ("", True)
    assert Fault.CLOCK_JUMP in result.fired
