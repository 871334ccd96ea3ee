"""A result says what it did not try, and what it did not compare."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.command.explore import again
from lost_update_lab.model.errors import MORE_TIME
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.scenarios.conclusion import CUT_SHORT
from lost_update_lab.scenarios.notes import MESSAGES, SENT_ONCE
from lost_update_lab.search.search import Search

Trial = Callable[..., Result]


def adds(redis: Any) -> None:
    redis.incr("count")


def sleeps(redis: Any) -> None:
    redis.incr("count")
    time.sleep(1)
    redis.incr("count")


@pytest.mark.deep
def test_how_late_a_worker_may_be_counts_where_time_passes(trial: Trial) -> None:
    assert "late" not in trial([adds, adds]).bounds
    assert (
        "every order of A and B, none late by more than 0.2 s, no fault"
        in trial([sleeps, sleeps], slack=0.2).bounds
    )
    paused = trial([sleeps, sleeps], pauses=1)
    assert "none late by more than 0.1 s without a pause, at most 1 fault (pause)" in paused.bounds
    assert again("shop:pay", {"slack": 0.5}).endswith(" --slack 0.5")


def test_the_client_that_is_handed_in_sends_nothing_twice(trial: Trial) -> None:
    assert SENT_ONCE in trial([adds, adds], lost_replies=1).notes
    assert SENT_ONCE not in trial([adds, adds]).notes


def publishes(redis: Any) -> None:
    if redis.set("done", 1, nx=True):
        redis.publish("pay", "refund")


def notifies(sql: Any) -> None:
    sql.execute("SELECT pg_notify('pay', 'refund')")


@pytest.mark.parametrize(("operation", "told"), [(publishes, True), (notifies, True), (adds, False)])
def test_messages_are_not_compared(trial: Trial, operation: Any, told: bool) -> None:
    assert (MESSAGES in trial([operation, operation]).notes) is told


def loses(redis: Any) -> None:
    redis.set("count", int(redis.get("count") or 0) + 1)


def test_a_search_that_ends_early_says_why_beside_what_it_found(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Search.explore

    def ends_early(search: Search) -> SearchResult:
        found = whole(search)
        found.exhausted, found.cause, found.remedy = False, "the budget of 2 s ended", MORE_TIME
        return found

    monkeypatch.setattr(Search, "explore", ends_early)
    result = trial([loses, loses])
    assert (result.verdict, result.exhausted) == ("violated", False)
    assert CUT_SHORT.format("the budget of 2 s ended", "give it more time: budget=SECONDS") in result.notes
