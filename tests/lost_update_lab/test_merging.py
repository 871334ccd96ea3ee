"""A recording takes a waiter for being where it was a round ago, times for how long ago they were, and the threads of a
worker for where they are, whatever their order. Who is not the same there is recorded without, and comes to the same
either way."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from locks.token_lock import TokenLock
from lost_update_lab import harness
from lost_update_lab.memo.recording import Recording
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search import search
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]
LONG = pytest.mark.deep


def token(own: bank.Bank) -> Any:
    return TokenLock("lock", redis=own.redis, lease=2.0)


def polling(sleep: Callable[[], float], name: Callable[[], str] = lambda: "A") -> Callable[[bank.Bank], Any]:
    """A lock without a lease, with the waiters' sleep and names."""

    @contextmanager
    def lock(own: bank.Bank) -> Iterator[None]:
        while not own.redis.set("lock", name(), nx=True):
            time.sleep(sleep())
        yield
        own.redis.delete("lock")

    return lock


@contextmanager
def helped(own: bank.Bank) -> Iterator[None]:
    """A lock whose worker has a second thread."""
    threading.Thread(target=lambda: own.redis.get("lock")).start()
    while not own.redis.set("lock", "A", nx=True):
        time.sleep(0.05)
    yield
    own.redis.delete("lock")


by_chance = polling(lambda: random.choice([0.05, 0.08]))
by_the_time = polling(lambda: 0.05, lambda: str(time.monotonic()))


def told(result: SearchResult) -> tuple[Any, ...]:
    return result.counts, result.finals, result.schedules, result.steps, result.states, result.exhausted


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("lock", "merges"),
    [
        # `merges`: could that be gone on with to the end?
        pytest.param(token, True, marks=pytest.mark.deep(short=False)),
        (bank.three_tries(0.3), True),  # a memory of three: it was not watched for long
        (by_chance, True),
        pytest.param(by_the_time, False, marks=LONG),
        pytest.param(helped, True, marks=LONG),
    ],
)
def test_the_result_is_the_same_with_and_without(
    explore: Explore, monkeypatch: pytest.MonkeyPatch, lock: Any, merges: bool
) -> None:
    made: list[Recording] = []

    def noted(*args: Any, **how: Any) -> Recording:
        made.append(Recording(*args, **how))
        return made[-1]

    deposit = bank.locked_by(lock, work=0.2)
    for module in (harness, search):
        monkeypatch.setattr(module, "Recording", noted)
    merged = explore(deposit)
    assert made[-1].merges == merges
    monkeypatch.setattr(harness, "Recording", partial(Recording, merges=False))
    assert told(merged) == told(explore(deposit))
    assert merged.exhausted
