"""A wider bound finds more, never less: on the real strategies (generated locks: lost_update_lab/test_wider_bounds.py).

What K faults find, K + 1 find too, and under no hazard does the word get better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from ledger.strategies import STRATEGIES
from loadtest.explorer.lanes import Lanes
from loadtest.explorer.reach import out_of_reach
from loadtest.findings.explored import Explored
from loadtest.findings.job import Job
from loadtest.verdict.words import Word
from lost_update_lab.model.system import UNBROKEN

#: with one fault, a second of CPU time at most; all others are deep
QUICK = ("select-for-update", "counter", "token-leaky", "redis-gate")
#: exhausted with two faults in a few seconds
TWICE = ("no-lock", "select-for-update", "advisory-lock", "optimistic-version", "counter")
#: a service's thread in each worker: on a slow machine its search is not exhausted without a fault either
CUT_SHORT = ("renewal-service",)
#: seconds for one search; none has to be exhausted: whatever is found in less, must be found again
BUDGET = 100.0

Search = Callable[..., Explored]


@pytest.fixture(scope="module")
def search(django_db_blocker: Any) -> Iterator[Search]:
    with django_db_blocker.unblock(), Lanes(1) as lanes:

        @cache
        def explored(strategy: str, faults: int) -> Explored:
            [(_, answer)] = lanes.explore([Job(strategy=strategy, faults=faults, budget=BUDGET)])
            assert "result" in answer, answer
            return answer["result"]

        yield explored


def within_reach() -> Iterator[Any]:
    for slug in STRATEGIES:
        if not out_of_reach(Job(strategy=slug)):
            yield pytest.param(slug, marks=() if slug in QUICK else pytest.mark.deep)


def _rank(word: str) -> int:
    return [*map(str, Word), UNBROKEN].index(word)


def worse(fewer: Explored, more: Explored) -> list[str]:
    """Where the narrower bound knows something graver. A hazard that the search did not finish is left out, except for
    what it has found all the same."""
    found = []
    for hazard, (word, _) in fewer.came_to.items():
        there, _ = more.came_to.get(hazard, (UNBROKEN, ""))
        if _rank(there) > _rank(word) and (more.exhausted or hazard in more.decided):
            found.append(f"{hazard or 'anything'}: {word} became {there}")
    return found


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("strategy", [*within_reach()])
def test_what_is_found_without_a_fault_is_found_with_one(strategy: str, search: Search) -> None:
    none, one = search(strategy, 0), search(strategy, 1)
    assert worse(none, one) == []
    assert none.exhausted or strategy in CUT_SHORT, none.cause
    if none.exhausted:
        assert none.came_to["contention"][0] == one.came_to["contention"][0]
        assert none.words.keys() <= one.words.keys()


@pytest.mark.deep
@pytest.mark.parametrize("strategy", TWICE)
def test_what_is_found_with_one_fault_is_found_with_two(strategy: str, search: Search) -> None:
    one, two = search(strategy, 1), search(strategy, 2)
    assert (one.exhausted, two.exhausted) == (True, True)
    assert worse(one, two) == []
    assert one.words.keys() <= two.words.keys()


def test_a_word_that_gets_better_would_be_seen(search: Search) -> None:
    """The control: the two searches the other way round."""
    better = worse(search("counter", 1), search("counter", 0))
    assert {"anything: lost became stalled", "failover: lost became unbroken"} <= {*better}
