"""When the time ends: what one look shows is found all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from locks.reentrant import ReentrantLock
from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import MORE_TIME, Broken
from lost_update_lab.model.workers import State, Task
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import virtual_clock
from lost_update_lab.schedule.schedule_id import exactly
from lost_update_lab.search import search
from lost_update_lab.search.search import Search
from lost_update_lab.search.single_deviations import single_deviations
from tests.lost_update_lab import bank
from tests.lost_update_lab.test_search import setnx

LEFT_FOR_EVER = bank.locked_by(setnx)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search whose time ends after its first schedule."""

    def ended(self: Search) -> bool:
        raise Broken("the budget ended", MORE_TIME)

    monkeypatch.setattr(Search, "_backtrack", ended)


@pytest.mark.deep
@pytest.mark.usefixtures("short")
def test_a_crash_right_after_the_lock_is_found(explore: Callable[..., SearchResult]) -> None:
    result = explore(LEFT_FOR_EVER, faults=1)
    assert (result.exhausted, result.cause) == (False, "the budget ended")
    assert result.under(Fault.CRASH) == "stalled"
    assert Fault.CRASH in result.fired


@pytest.mark.usefixtures("short")
def test_so_is_a_loss_without_a_fault(explore: Callable[..., SearchResult]) -> None:
    assert explore(bank.no_lock).under(None) == "lost"


@pytest.mark.deep
@pytest.mark.usefixtures("short")
def test_without_the_search_of_single_deviations_neither_is(
    explore: Callable[..., SearchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "single_deviations", lambda *_: iter(()))
    assert explore(LEFT_FOR_EVER, faults=1).worst == explore(bank.no_lock).worst == "unbroken"


@pytest.mark.deep
def test_what_it_finds_is_a_schedule_like_any_other(harness: Callable[..., Harness]) -> None:
    """The search finds the same words under the same faults, and each comes again when it is repeated."""
    on = harness(LEFT_FOR_EVER, faults=1)
    searched = Search(on)
    result = searched.explore()
    assert result.exhausted
    deviating = [found for found, _ in single_deviations(on, searched.calibrated)]
    assert {(found.word, found.faults) for found in deviating} <= result.found.keys()
    for found in deviating:
        assert play(on, searched.calibrated, exactly(found.choices))[0].same_as(found)


@pytest.mark.deep
def test_the_time_for_it_is_part_of_the_budget(explore: Callable[..., SearchResult]) -> None:
    result = explore(LEFT_FOR_EVER, faults=1, budget=60.0)
    assert result.exhausted, "a search that comes to its end needs none"
    assert result.schedules == explore(LEFT_FOR_EVER, faults=1).schedules


def renewed(own: bank.Bank) -> ReentrantLock:
    return ReentrantLock("lock", redis=own.redis, lease=30.0, poll=2.0)


def unseen(known: Harness) -> set[tuple[str, tuple[Fault, ...]]]:
    """What single deviations find and the whole search does not."""
    searched = Search(known)
    result = searched.explore()
    assert result.exhausted, result.cause
    seen = {(found.word, found.faults) for found, _ in single_deviations(known, searched.calibrated)}
    return seen - result.counts.keys()


@pytest.mark.deep
def test_a_whole_search_has_seen_what_a_look_sees(
    harness: Callable[..., Harness], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = frozenset({Fault.RENEWAL_LIVES, Fault.FAILOVER})
    known = harness(bank.locked_by(renewed), faults=1, kinds=kinds)
    assert unseen(known) == set()
    monkeypatch.setattr(virtual_clock, "dozes", as_if_nothing_were_renewed)
    assert unseen(known) == {("stalled", (Fault.RENEWAL_LIVES,))}, (
        "the control: renewals that are slept through"
    )


def as_if_nothing_were_renewed(run: Run, task: Task) -> bool:
    in_vain = task.vain_since is not None and task.period > 0 and task.state in (State.WAIT, State.BLOCKED)
    return in_vain and not virtual_clock.held_back(run, task.worker)
