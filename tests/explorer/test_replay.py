"""A counterexample is shrunk, repeated ten times, and comes back from its short text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.explorer.replay import Diverged, decode, encode, exactly, play
from loadtest.explorer.search import Search
from loadtest.explorer.shrink import TIMES, confirmed, shrink
from loadtest.explorer.stage import Stage
from tests.explorer import bank
from tests.explorer.test_search import naive, token


@given(st.lists(st.integers(0, 20), max_size=60))
def test_the_text_says_every_decision(choices: list[int]) -> None:
    while choices and choices[-1] == 0:
        choices.pop()
    assert decode(encode(choices)) == choices


@pytest.mark.parametrize("text", ["12", "a-b", "ä", "3 a"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no schedule"):
        decode(text)


@pytest.mark.parametrize(("lock", "faults", "switches"), [(naive, 0, 3), (token, 1, 2)])
def test_shrunk_confirmed_replayed(
    stage: Callable[..., Stage], lock: object, faults: int, switches: int
) -> None:
    played = stage(bank.locked_by(lock), faults=faults)
    search = Search(played)
    found = search.explore().smallest("lost")
    assert found
    small = shrink(played, search.watched, found)
    assert small.size <= found.size
    assert small.switches == switches
    assert confirmed(played, search.watched, small) == TIMES
    again, _ = play(played, search.watched, exactly(decode(encode(small.choices))))
    assert (again.word, again.options) == ("lost", small.options)
    assert [step.command for step in again.steps] == [step.command for step in small.steps]


def test_a_schedule_of_something_else_does_not_pass_for_this_one(stage: Callable[..., Stage]) -> None:
    played = stage(bank.no_lock)
    with pytest.raises(Diverged):
        play(played, {}, exactly([0, 25]))
