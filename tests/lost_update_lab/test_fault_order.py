"""Kind after kind: a search that is cut short has decided the kinds that it finished."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from locks.token_lock import TokenLock
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import MORE_TIME, REPORT_IT, Broken
from lost_update_lab.runs.found import Faults, Found, SearchResult
from lost_update_lab.runs.run import Run
from lost_update_lab.search import fault_order
from lost_update_lab.search.search import Search
from tests.lost_update_lab import bank
from tests.lost_update_lab.test_search import setnx

Explore = Callable[..., SearchResult]
KINDS = frozenset({Fault.CRASH, Fault.LOST_REPLY})
LEFT_FOR_EVER = bank.locked_by(setnx)
LEASED = bank.locked_by(lambda own: TokenLock("lock", redis=own.redis, lease=2.0))


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[Faults]:
    """The faults of each finished schedule, in the order of the search."""
    seen: list[Faults] = []
    judged = SearchResult.judged

    def noted(result: SearchResult, found: Found, run: Run, final: bytes) -> None:
        seen.append(found.faults)
        judged(result, found, run, final)

    monkeypatch.setattr(SearchResult, "judged", noted)
    return seen


def cut_short_at(monkeypatch: pytest.MonkeyPatch, kind: Faults, remedy: str = MORE_TIME) -> None:
    """The search ends when it is about to execute the first schedule of this kind."""
    backtrack = Search._backtrack

    def ends(search: Search) -> bool:
        more = backtrack(search)
        if search.fault_order.faults == kind:
            raise Broken("the time is over", remedy)
        return more

    monkeypatch.setattr(Search, "_backtrack", ends)


@pytest.mark.deep(short=False)
def test_first_without_faults_then_one_kind_after_the_other(explore: Explore, order: list[Faults]) -> None:
    result = explore(LEFT_FOR_EVER, faults=2, kinds=KINDS)
    assert result.exhausted
    kinds = [kind for kind, _ in groupby(order)]
    crash, lost = Fault.CRASH, Fault.LOST_REPLY
    assert kinds == [(), (crash,), (lost,), (crash, crash), (crash, lost), (lost, lost)]


@pytest.mark.deep
@pytest.mark.parametrize(("until", "done"), [(Fault.CRASH, {None}), (Fault.LOST_REPLY, {None, Fault.CRASH})])
def test_a_finished_kind_is_decided_as_by_a_search_of_its_own(
    explore: Explore, monkeypatch: pytest.MonkeyPatch, until: Fault, done: set[Fault | None]
) -> None:
    alone = explore(LEFT_FOR_EVER, faults=1, kinds=frozenset({Fault.CRASH}))
    cut_short_at(monkeypatch, (until,))
    cut = explore(LEFT_FOR_EVER, faults=1, kinds=KINDS)
    assert not cut.exhausted
    assert cut.decided & {None, *KINDS} == done
    for fault in done:
        assert cut.under(fault) == alone.under(fault)


@pytest.mark.deep
def test_two_faults_of_a_kind_count_to_that_kind(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short_at(monkeypatch, (Fault.CRASH, Fault.CRASH))
    cut = explore(LEFT_FOR_EVER, faults=2, kinds=KINDS)
    assert cut.decided & {None, *KINDS} == {None}


@pytest.mark.deep
def test_nothing_is_decided_where_no_kind_was_finished(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_short_at(monkeypatch, ())
    cut = explore(LEFT_FOR_EVER, faults=1)
    assert (cut.exhausted, cut.decided) == (False, set())


@pytest.mark.deep
def test_nor_where_something_else_than_time_has_ended_it(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_short_at(monkeypatch, (Fault.LOST_REPLY,), REPORT_IT)
    assert explore(LEFT_FOR_EVER, faults=1).decided == set()


@pytest.mark.deep
def test_what_nobody_claims_is_left_at_the_first_schedule_that_loses_money(
    harness: Callable[..., Any],
) -> None:
    kinds = frozenset({Fault.PAUSE, Fault.CRASH})
    found = Search(harness(LEASED, faults=1, kinds=kinds), frozenset({Fault.PAUSE})).explore()
    whole = Search(harness(LEASED, faults=1, kinds=kinds)).explore()
    assert (found.settled, found.exhausted) == (True, False)
    assert (whole.settled, whole.exhausted) == (True, True)
    assert found.schedules < whole.schedules
    assert whole.under(Fault.PAUSE) == "lost"
    for fault in (None, *kinds):
        assert found.under(fault) == whole.under(fault)
    assert found.decided & {None, *kinds} == {None, Fault.CRASH}
    assert whole.decided & {None, *kinds} == {None, *kinds}


@pytest.mark.deep
def test_what_only_stalls_is_searched_on(harness: Callable[..., Any]) -> None:
    """A crash leaves this lock for ever; as little is left to be searched, that is searched to its end."""
    found = Search(harness(LEFT_FOR_EVER, faults=1, kinds=KINDS), KINDS).explore()
    assert (found.under(Fault.CRASH), found.exhausted) == ("stalled", True)


@pytest.mark.deep
def test_what_breaks_nothing_is_left_after_so_many_steps(
    harness: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the same schedule on every machine."""
    monkeypatch.setattr(fault_order, "ENOUGH", 60)
    crash = frozenset({Fault.CRASH})
    found, again = (Search(harness(bank.select_for_update, faults=1), crash).explore() for _ in range(2))
    assert (found.settled, found.exhausted, found.under(Fault.CRASH)) == (True, False, "unbroken")
    assert Fault.CRASH not in found.decided
    assert (found.schedules, found.steps) == (again.schedules, again.steps)


@pytest.mark.deep
def test_what_only_stalls_is_left_sooner(
    harness: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_order, "ENOUGH_STALLED", 1)
    found = Search(harness(LEFT_FOR_EVER, faults=1, kinds=KINDS), KINDS).explore()
    assert (found.under(Fault.CRASH), found.settled, found.exhausted) == ("stalled", True, False)
