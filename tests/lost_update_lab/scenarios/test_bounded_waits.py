"""A waiter that asks some times, and then gives up or goes on: how often it has asked is a part of the state."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.schedule import virtual_clock
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]
TOLD = (lambda checkout, webhook, redis: checkout == "paid", "told that nothing was charged, and charged")


def an_order(redis: Any) -> None:
    redis.set("order", "open")


def checkout(tries: int, redis: Any) -> str:
    for _ in range(tries):
        if redis.get("order") == b"paid":
            return "paid"
        time.sleep(5)
    return "not charged"


def webhook(redis: Any) -> None:
    redis.set("order", "paid")


@pytest.mark.parametrize("tries", [4, pytest.param(5, marks=pytest.mark.deep), 9])
def test_one_that_begins_after_the_last_try_is_explored(trial: Trial, tries: int) -> None:
    """From its third try on the polls were taken for one, and the other worker began among them: `kept`."""
    result = trial([(checkout, tries), webhook], setup=an_order, invariant=TOLD, control=False)
    assert result.verdict == VIOLATED


def test_it_is_noticed_in_the_search(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """The must-fail control: without going on with the polls, nobody gives up."""
    monkeypatch.setattr(virtual_clock, "polls_on", lambda run, transitions: 0)
    monkeypatch.setattr(virtual_clock, "gives_up", lambda run, task: None)
    result = trial([(checkout, 9), webhook], setup=an_order, invariant=TOLD, control=False)
    assert result.verdict == KEPT


def an_account(redis: Any) -> None:
    redis.set("balance", 100)


def capture(tries: int, redis: Any) -> str:
    """Its lease is longer than all tries together."""
    if not redis.set("lock", "capture", nx=True, ex=5 * tries + 2):
        return "busy"
    balance = int(redis.get("balance"))
    for _ in range(tries):
        if redis.get("bank"):
            break
        time.sleep(5)
    redis.set("balance", balance - 10)
    redis.delete("lock")
    return "ok"


def fee(redis: Any) -> None:
    while not redis.set("lock", "fee", nx=True, ex=600):
        time.sleep(1)
    redis.set("balance", int(redis.get("balance")) - 20)
    redis.delete("lock")


def something_else(redis: Any) -> None:
    redis.set("something else", 1)


def test_no_loop_lasts_longer_than_its_tries(trial: Trial) -> None:
    """A worker that stood still was taken for one that had polled all that time. So a sleep of 5 s took 670 s."""
    result = trial(
        [(capture, 5), fee, something_else],
        setup=an_account,
        invariant=lambda a, b, c, redis: int(redis.get("balance")) == 80 - 10 * (a == "ok"),
        control=False,
    )
    assert result.verdict == KEPT
