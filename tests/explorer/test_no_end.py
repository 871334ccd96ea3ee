"""A schedule without an end, and a search without one: both end, and neither is called exhausted."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from loadtest.explorer import endless
from loadtest.explorer.result import Result
from tests.explorer import bank

Explore = Callable[..., Result]


def for_ever(own: bank.Bank, amount: int) -> str:
    while True:
        own.redis.incr("count")


def test_the_budget_ends_a_search_inside_a_schedule(explore: Explore) -> None:
    begun = time.monotonic()
    result = explore(for_ever, budget=1.0)
    assert not result.exhausted
    assert result.cause == "the budget of 1 s ended"
    assert "--budget" in result.remedy
    assert time.monotonic() - begun < 30


def test_without_a_budget_the_length_of_a_schedule_is_bounded(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endless, "MOST_DECISIONS", 200)
    result = explore(for_ever)
    assert not result.exhausted
    assert "did not end within 200 decisions; last: INCRBY" in result.cause
