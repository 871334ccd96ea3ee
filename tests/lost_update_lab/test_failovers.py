"""A failover, or a jump of the server's clock, in the middle of what several commands do: each was wrongly `kept`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.schedule import enabled, faults
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.redis import memoised, server
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]
DEADLINE = """
local now = tonumber(redis.call('TIME')[1])
if tonumber(redis.call('GET', KEYS[1]) or '0') > now then return 0 end
redis.call('SET', KEYS[1], now + 10)
return 1
"""


@contextmanager
def alone(bank: Bank) -> Iterator[None]:
    while not bank.redis.set("lock", "taken", nx=True):
        time.sleep(1)
    yield
    bank.redis.delete("lock")


@contextmanager
def pipeline(bank: Bank, transaction: bool = False) -> Iterator[None]:
    """All who take it write the same."""
    while True:
        several = bank.redis.pipeline(transaction=transaction)
        several.set("lock", "taken", nx=True)
        several.sadd("locks", "lock")
        if several.execute()[0]:
            break
        time.sleep(1)
    yield
    bank.redis.delete("lock")


@contextmanager
def transaction(bank: Bank) -> Iterator[None]:
    with pipeline(bank, transaction=True):
        yield


@contextmanager
def deadline(bank: Bank) -> Iterator[None]:
    while not bank.redis.eval(DEADLINE, 1, "lock"):
        time.sleep(0.5)
    yield
    bank.redis.delete("lock")


@contextmanager
def deadline_by_time(bank: Bank) -> Iterator[None]:
    while True:
        now = bank.redis.time()[0]
        if bank.redis.setnx("lock", now + 10):
            break
        if (
            int(found := bank.redis.get("lock") or b"0") < now
            and bank.redis.getset("lock", now + 10) == found
        ):
            break
        time.sleep(0.5)
    yield
    bank.redis.delete("lock")


def under(explore: Explore, lock: Callable[[Bank], Iterator[None]], fault: Fault) -> str:
    result = explore(locked_by(lock), faults=1, kinds=frozenset({fault}))
    assert (result.cause, result.exhausted) == ("", True)
    assert result.under(None) == UNBROKEN
    return result.under(fault)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("lock", [alone, pipeline, transaction])
def test_a_failover_forgets_the_lock(explore: Explore, lock: Callable[[Bank], Iterator[None]]) -> None:
    """In a pipeline: a worker that was cut off before its SET, and connected again, and one that was cut off after it
    were in one state. In a MULTI: the other worker had always begun its own, and was cut off with it."""
    assert under(explore, lock, Fault.FAILOVER) == "lost"


def test_where_a_connection_was_cut_is_a_part_of_the_state(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: those that have not begun are cut off, too, and nobody remembers when that was."""
    cut_off = faults.fail_over

    def forgets(world: World, name: str) -> None:
        before = {task: (task.due, task.history.copy()) for task in world.tasks}
        for task in world.tasks:
            task.due = task.due or 0
        cut_off(world, name)
        for task, (due, history) in before.items():
            task.due, task.history = due, history

    monkeypatch.setattr(faults, "fail_over", forgets)
    assert under(explore, pipeline, Fault.FAILOVER) != "lost"


def test_one_that_has_only_begun_may_begin_later(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(enabled, "_may_fail_over", lambda world, name: False)
    assert under(explore, transaction, Fault.FAILOVER) != "lost"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("lock", [deadline, deadline_by_time])
def test_a_clock_that_is_asked_for_jumps(explore: Explore, lock: Callable[[Bank], Iterator[None]]) -> None:
    """A jump was tried on leases, and not on a deadline that stands in a value."""
    assert under(explore, lock, Fault.CLOCK_JUMP) == "lost"


def test_how_far_it_has_jumped_is_a_part_of_the_state(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    for module in (memoised, server):
        monkeypatch.setattr(module, "jumped", lambda ahead: b"")
    assert under(explore, deadline, Fault.CLOCK_JUMP) == UNBROKEN
