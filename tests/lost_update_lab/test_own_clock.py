"""What Redis measures by its own clock decides nothing: a search that kept such a lock would be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lost_update_lab.runs.found import SearchResult
from lost_update_lab.servers.redis.own_clock import MEASURES, NOTE_THE_TIME, by_its_clock
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]


def by_a_command(bank: Bank) -> Any:
    return bank.redis.object("idletime", "lock")


def by_a_script(bank: Bank) -> Any:
    return bank.redis.eval("return redis.call('OBJECT', 'IDLETIME', KEYS[1])", 1, "lock")


@contextmanager
def _taken_if_unused(bank: Bank, idle: Callable[[Bank], Any]) -> Iterator[None]:
    while not bank.redis.set("lock", 1, nx=True):
        time.sleep(5)
        if (idle(bank) or 0) > 20:
            bank.redis.delete("lock")
    yield
    bank.redis.delete("lock")


@pytest.mark.parametrize("idle", [by_a_command, by_a_script])
def test_for_how_long_nobody_has_used_a_key(explore: Explore, idle: Callable[[Bank], Any]) -> None:
    """A waiter that takes away what nobody has used for 20 s was kept, and under a pause, too."""

    def taken_if_unused(bank: Bank) -> Any:
        return _taken_if_unused(bank, idle)

    result = explore(locked_by(taken_if_unused), faults=1)
    assert result.cause == MEASURES.format(name="OBJECT IDLETIME")
    assert (result.remedy, result.exhausted) == (NOTE_THE_TIME, False)


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ((b"object", b"idletime", b"k"), True),
        ((b"OBJECT", b"FREQ", b"k"), True),
        ((b"OBJECT", b"ENCODING", b"k"), False),
        ((b"LASTSAVE",), True),
        ((b"DEBUG", b"OBJECT", b"k"), True),
        ((b"DEBUG", b"SLEEP", b"0"), False),
        ((b"XINFO", b"CONSUMERS", b"s", b"g"), True),
        ((b"XINFO", b"GROUPS", b"s"), False),
        ((b"GET", b"IDLETIME"), False),
    ],
)
def test_which_commands_ask(words: tuple[bytes, ...], asks: bool) -> None:
    assert bool(by_its_clock(words, None)) == asks
