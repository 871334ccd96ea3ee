"""Two programs that Hypothesis wrote: the search comes to the outcomes of the search that leaves out nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lost_update_lab.model.bounds import SECOND, Fault, Reduction
from lost_update_lab.search import independence
from lost_update_lab.search.search import Search
from tests.lost_update_lab.conftest import standing
from tests.lost_update_lab.generated_programs import Command, Finally, Pair, Program, pairs
from tests.lost_update_lab.test_reduction import without_the_worker

Urls = tuple[str, str]
Outcomes = tuple[set[Any], set[bytes], int]
REFEREE = {"reduction": Reduction.NONE, "recorded": False}


def outcomes(urls: Urls, pair: tuple[Program, Program], **bounds: Any) -> Outcomes:
    """What both came to, what was left in the servers, and the number of schedules of the whole search."""
    with standing(system := Pair(pair, *urls), urls, patience=SECOND, **bounds) as harness:
        found = Search(harness).explore()
    assert found.exhausted, found.cause
    return system.outcomes, found.finals, found.schedules


def compared(
    urls: Urls, most: int, examples: int, faults: st.SearchStrategy[Fault | None]
) -> tuple[int, int]:
    """Search so many pairs of `most` steps both ways. Returns the schedules of both ways."""
    schedules = [0, 0]

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(pairs(most), faults)
    def same(pair: tuple[Program, Program], fault: Fault | None) -> None:
        bounds = {"faults": 1, "kinds": frozenset({fault})} if fault else {"faults": 0}
        reduced, referee = outcomes(urls, pair, **bounds), outcomes(urls, pair, **bounds, **REFEREE)
        assert reduced[:2] == referee[:2]
        schedules[0] += reduced[2]
        schedules[1] += referee[2]

    same()
    return schedules[0], schedules[1]


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("most", "examples", "faults"),
    [
        (5, 8, st.none()),
        (8, 100, st.none()),
        (4, 100, st.sampled_from(Fault)),
    ],
    ids=["few", "many", "one fault"],
)
def test_the_search_of_two_programs_leaves_out_no_outcome(
    explorer_urls: Urls, most: int, examples: int, faults: st.SearchStrategy[Fault | None]
) -> None:
    reduced, referee = compared(explorer_urls, most, examples, faults)
    assert reduced < referee


@pytest.mark.deep
def test_a_crash_after_a_failover(explorer_urls: Urls) -> None:
    """Had A died before it, B would have ended everything, and no replica would have taken over. It was left out."""
    twice = (Finally((Command("INCRBY"),), (Command("INCRBY"),)),)
    pair = twice, (Command("SET what was read + own"),)
    bounds: dict[str, Any] = {"faults": 2, "kinds": frozenset({Fault.CRASH, Fault.FAILOVER})}
    assert (
        outcomes(explorer_urls, pair, **bounds)[:2] == outcomes(explorer_urls, pair, **bounds, **REFEREE)[:2]
    )


def test_a_wrong_relation_leaves_out_an_outcome(explorer_urls: Urls, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tuple(map(Command, ("GET", "SET what was read + own", "GET")))
    pair = program, program
    referee = outcomes(explorer_urls, pair, faults=0, **REFEREE)
    assert outcomes(explorer_urls, pair, faults=0)[:2] == referee[:2]
    monkeypatch.setattr(independence, "depends_on", without_the_worker)
    assert outcomes(explorer_urls, pair, faults=0)[:2] != referee[:2]
