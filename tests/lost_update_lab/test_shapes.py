"""The shapes of locks in the field, each searched to its end: two workers, one fault of any kind.

How long that takes is a matter of the machine; how many states there are is not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import redis

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.schedule import enabled
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]


@contextmanager
def counter(bank: Bank, poll: float = 1.0) -> Iterator[None]:
    """An INCR that only grows: each try changes something, and no state comes again."""
    while bank.redis.incr("lock") != 1:
        time.sleep(poll)
    bank.redis.expire("lock", 10)
    yield
    bank.redis.delete("lock")


def counter_in_haste(bank: Bank) -> Any:
    return counter(bank, 0.1)


@contextmanager
def ticket(bank: Bank) -> Iterator[None]:
    mine = bank.redis.incr("tickets")
    while int(bank.redis.get("served") or 0) + 1 != mine:
        time.sleep(1)
    yield
    bank.redis.incr("served")


@contextmanager
def token_in_a_list(bank: Bank) -> Iterator[None]:
    if bank.redis.set("made", 1, nx=True):
        bank.redis.lpush("lock", "token")
    while not bank.redis.blpop("lock", 1):
        pass
    yield
    bank.redis.lpush("lock", "token")


@contextmanager
def two_queues(bank: Bank) -> Iterator[None]:
    """Waiting, and inside: the ticket of a crashed waiter stays for ever."""
    me = f"owner {id(bank.sql)}"
    bank.redis.rpush("waiting", me)
    while bank.redis.lindex("waiting", 0) != me.encode() or bank.redis.llen("inside"):
        time.sleep(1)
    bank.redis.lmove("waiting", "inside", "LEFT", "RIGHT")
    yield
    bank.redis.lrem("inside", 1, me)


@contextmanager
def group_of_a_stream(bank: Bank, consumer: str = "one") -> Iterator[None]:
    with suppress(redis.ResponseError):
        bank.redis.xgroup_create("lock", "all", id="0", mkstream=True)
        bank.redis.xadd("lock", {"token": 1}, id="1-1")
    while not (got := bank.redis.xreadgroup("all", consumer, {"lock": ">"}, count=1, block=1000)):
        pass
    number = next(iter(got.values()))[0][0][0] if isinstance(got, dict) else got[0][1][0][0]
    yield
    bank.redis.xack("lock", "all", number)
    bank.redis.xadd("lock", {"token": 1})


def consumers_of_their_own(bank: Bank) -> Any:
    """The first poll of each makes its consumer: news to the other one. Where that came as the other was about to look,
    each later poll of the two was a moment of its own, for a minute."""
    return group_of_a_stream(bank, str(os.getpid()))


#: shape → the word under a crash, and the most states
SHAPES: dict[Callable[[Bank], Any], tuple[str, int]] = {
    ticket: ("stalled", 1_500),
    counter: ("stalled", 5_000),
    counter_in_haste: ("stalled", 22_000),
    token_in_a_list: ("stalled", 4_000),
    two_queues: ("stalled", 5_000),
    group_of_a_stream: ("stalled", 6_000),
    consumers_of_their_own: ("stalled", 6_000),
}


@pytest.mark.parametrize(
    "lock", [pytest.param(each, marks=[pytest.mark.deep] * (each is not ticket)) for each in SHAPES]
)
def test_a_lock_of_this_shape_is_searched_to_its_end(lock: Callable[[Bank], Any], explore: Explore) -> None:
    result = explore(locked_by(lock), faults=1)
    assert (result.cause, result.exhausted) == ("", True)
    crashed, most = SHAPES[lock]
    assert (result.under(None), result.under(Fault.CRASH)) == (UNBROKEN, crashed)
    assert result.states < most


@pytest.mark.deep
def test_a_pause_that_ends_after_each_attempt_finds_no_more(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The referee: a pause ends after each attempt of the other worker."""
    kinds = frozenset({Fault.PAUSE, Fault.CRASH})
    some = explore(locked_by(counter), faults=1, kinds=kinds)
    monkeypatch.setattr(enabled, "FEW_ATTEMPTS", 10_000)
    every = explore(locked_by(counter), faults=1, kinds=kinds)
    assert (some.found.keys(), some.exhausted) == (every.found.keys(), every.exhausted)
    assert some.states < every.states
