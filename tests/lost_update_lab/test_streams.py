"""Locks that are streams: entries are numbered by virtual time, and what a group has read is a part of the state."""

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
from lost_update_lab.servers.redis.own_clock import BY_ITSELF
from lost_update_lab.servers.redis.streams import numbered
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]
BY_A_SCRIPT = "return redis.call('XADD', KEYS[1], 'MAXLEN', '~', 100, '*', 'who', ARGV[1])"


@contextmanager
def queue(
    bank: Bank, by: Callable[[Bank], Any] = lambda bank: bank.redis.xadd("lock", {"who": 1})
) -> Iterator[None]:
    """The worker with the first entry is inside."""
    mine = by(bank)
    while bank.redis.xrange("lock", count=1)[0][0] != mine:
        time.sleep(1)
    yield
    bank.redis.xdel("lock", mine)


def queue_by_a_script(bank: Bank) -> Any:
    return queue(bank, lambda bank: bank.redis.eval(BY_A_SCRIPT, 1, "lock", 1))


@contextmanager
def token(bank: Bank) -> Iterator[None]:
    """One message: the worker that has read it in its group is inside."""
    with suppress(redis.ResponseError):
        bank.redis.xgroup_create("lock", "all", id="0", mkstream=True)
        bank.redis.xadd("lock", {"token": 1}, id="1-1")
    while not (got := bank.redis.xreadgroup("all", "one", {"lock": ">"}, count=1)):
        time.sleep(1)
    number = next(iter(got.values()))[0][0][0] if isinstance(got, dict) else got[0][1][0][0]
    yield
    bank.redis.xack("lock", "all", number)
    bank.redis.xadd("lock", {"token": 1})


def taken_over(bank: Bank) -> Any:
    """The one that finds the message pending for 5 s takes it over: a lease by the server's clock."""
    return _taken_over(bank, lambda me: _first(bank.redis.xautoclaim("lock", "all", me, 5000)[1]))


def taken_over_by_number(bank: Bank) -> Any:
    def claim(me: str) -> Any:
        pending = bank.redis.xpending_range("lock", "all", "-", "+", 1)
        return pending and _first(bank.redis.xclaim("lock", "all", me, 5000, [pending[0]["message_id"]]))

    return _taken_over(bank, claim)


def taken_over_by_a_look(bank: Bank) -> Any:
    """XPENDING tells for how long, and the client compares."""

    def claim(me: str) -> Any:
        pending = bank.redis.xpending_range("lock", "all", "-", "+", 1)
        if pending and pending[0]["time_since_delivered"] >= 5000:
            return _first(bank.redis.xclaim("lock", "all", me, 0, [pending[0]["message_id"]]))
        return None

    return _taken_over(bank, claim)


@contextmanager
def _taken_over(bank: Bank, claim: Callable[[str], Any]) -> Iterator[None]:
    me = str(os.getpid())
    with suppress(redis.ResponseError):
        bank.redis.xgroup_create("lock", "all", id="0", mkstream=True)
        bank.redis.xadd("lock", {"token": 1}, id="1-1")
    while True:
        got = bank.redis.xreadgroup("all", me, {"lock": ">"}, count=1)
        if number := got[0][1][0][0] if got else claim(me):
            break
        time.sleep(2)
    yield
    if bank.redis.xack("lock", "all", number):
        bank.redis.xadd("lock", {"token": 1})


def _first(messages: Any) -> Any:
    return messages[0][0] if messages else None


@contextmanager
def claimed_by_a_script(bank: Bank) -> Iterator[None]:
    with suppress(redis.ResponseError):
        bank.redis.xgroup_create("lock", "all", id="0", mkstream=True)
    bank.redis.eval("return redis.call('XAUTOCLAIM', KEYS[1], 'all', 'one', 5000, '0')", 1, "lock")
    yield


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("lock", [queue, queue_by_a_script, token])
def test_a_stream_is_explored_to_its_end(lock: Callable[[Bank], Any], explore: Explore) -> None:
    """By the server's own clock no entry had the same number twice, and no state came again."""
    result = explore(locked_by(lock), faults=1, kinds=frozenset({Fault.CRASH}))
    assert (result.cause, result.exhausted) == ("", True)
    assert result.under(None) == UNBROKEN
    assert result.under(Fault.CRASH) == "stalled"
    assert result.in_memory > result.schedules / 4


def test_what_a_group_has_read_is_a_part_of_the_state(explore: Explore) -> None:
    """A crash with the message leaves the same entries behind as a crash before it is read. (By its entries
    alone there were two.)"""

    def reads(bank: Bank, amount: int) -> str:
        if amount == 10:
            bank.redis.xgroup_create("lock", "all", id="0", mkstream=True)
            bank.redis.xadd("lock", {"a": 1}, id="1-1")
            bank.redis.xreadgroup("all", "one", {"lock": ">"})
        return "ok"

    assert len(explore(reads, faults=1, kinds=frozenset({Fault.CRASH})).finals) == 3


@pytest.mark.deep
@pytest.mark.parametrize(
    "lock",
    [
        taken_over,
        taken_over_by_number,
        taken_over_by_a_look,
    ],
)
def test_how_long_a_message_is_pending_is_virtual(lock: Callable[[Bank], Any], explore: Explore) -> None:
    """A lease like any other: a crashed holder's ends, and a paused holder's too."""
    result = explore(locked_by(lock), faults=1, kinds=frozenset({Fault.CRASH, Fault.PAUSE}))
    assert (result.cause, result.exhausted) == ("", True)
    words = result.under(None), result.under(Fault.CRASH), result.under(Fault.PAUSE)
    assert words == (UNBROKEN, "stalled", "lost")
    assert "XCLAIM" in result.virtual_clocks["redis"]


@pytest.mark.deep
def test_a_holder_that_works_for_longer_is_overtaken_without_a_fault(explore: Explore) -> None:
    """The control: by the server's own clock, the message is pending for some milliseconds."""
    assert explore(locked_by(taken_over, work=10)).worst == "lost"


def test_a_script_that_asks_how_long_a_message_is_pending_decides_nothing(explore: Explore) -> None:
    result = explore(locked_by(claimed_by_a_script))
    assert "EVAL asks for how long a message has been pending" in result.cause
    assert result.remedy == BY_ITSELF


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("XADD s * f v", "XADD s 5000-* f v"),
        ("XADD s NOMKSTREAM maxlen ~ 10 LIMIT 5 * f *", "XADD s NOMKSTREAM maxlen ~ 10 LIMIT 5 5000-* f *"),
        ("XADD s MINID 1 * f v", "XADD s MINID 1 5000-* f v"),
        ("XADD s 7-1 f *", "XADD s 7-1 f *"),
        ("XADD s", "XADD s"),
    ],
)
def test_what_the_server_is_asked(command: str, asked: str) -> None:
    assert numbered(command.encode().split(), 5000) == asked.encode().split()
