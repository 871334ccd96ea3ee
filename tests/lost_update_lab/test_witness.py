"""What the servers held after each step: in virtual time, and without disturbing the schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Fault
from lost_update_lab.replay.annotate import witnessed
from lost_update_lab.search.search import Search
from tests.lost_update_lab import bank
from tests.lost_update_lab.test_search import naive, token


@pytest.mark.deep
def test_the_lease_runs_down_in_virtual_time(harness: Callable[..., Harness]) -> None:
    played = harness(bank.locked_by(token), faults=1, kinds=frozenset({Fault.PAUSE}))
    search = Search(played)
    found = search.explore().smallest("lost")
    assert found
    again = witnessed(played, search.watched, found)
    assert again.steps == found.steps
    opening, *states = again.states
    assert opening["keys"] == []
    assert len(states) == len(found.steps)
    left = [row["ttl_ms"] for state in states for row in state["keys"] if row["key"] == "lock"]
    assert max(left) == 2000
    assert any(not state["keys"] for state in states)  # it ended, or was released
    over = next(place for place, step in enumerate(found.steps) if step.kind == "lease")
    assert states[over - 1]["keys"]
    assert not states[over]["keys"]


def test_the_owner_of_a_key(harness: Callable[..., Harness]) -> None:
    """Both write the same value: the second one has it then."""
    played = harness(bank.locked_by(naive))
    search = Search(played)
    found = search.explore().smallest("lost")
    assert found
    states = witnessed(played, search.watched, found).states
    owners = [row["by"] for state in states for row in state["keys"]]
    assert {"A", "B"} <= set(owners)


def test_a_schedule_that_does_not_come_again_has_no_states(harness: Callable[..., Harness]) -> None:
    played = harness(bank.no_lock)
    search = Search(played)
    found = search.explore().smallest("lost")
    assert found
    other = replace(found, transitions=found.transitions[:-1])
    assert witnessed(played, search.watched, other) is other
