"""A step that will surely tell a worker something new is executed at once; one that tells no worker anything is not."""

from __future__ import annotations

from typing import Any

import pytest

from lost_update_lab.memo.recording import Node, Told
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.search.stack import Branch

KNOWN, UNKNOWN = ({"A": Node({(b"OK", cuts, ()): Told(frozenset())})} for cuts in [("redis",), ()])


@pytest.mark.parametrize(
    ("places", "number"),
    [
        ([(KNOWN, (), {"redis"}), (UNKNOWN, (), {"redis"})], 1),
        ([(KNOWN, (), {"redis"}), (KNOWN, (), {"redis"})], None),
        ([(KNOWN, (), {"redis"}), ({}, (), {"redis"})], None),  # it is at its end
        ([(KNOWN, (), {"redis"}), (UNKNOWN, (), {"postgres"})], None),  # it has no connection there
    ],
)
def test_a_failover_is_news_to_a_client_that_it_cuts_off_for_the_first_time(
    places: list[Any], number: int | None
) -> None:
    noted = tuple((node, cuts, frozenset(of)) for node, cuts, of in places)
    branch = Branch((Transition(Kind.FAILOVER, "redis"),), 0, 0, {}, {}, noted)
    assert branch.leads_to_news() == number
