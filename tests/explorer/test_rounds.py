"""Rounds that come again and again: which of them are one, and what would be missed if more of them were."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from loadtest.explorer import timeline
from loadtest.explorer.history import History
from loadtest.explorer.result import Result
from loadtest.explorer.subject import UNBROKEN
from loadtest.explorer.tasks import Worker
from tests.explorer import bank

Explore = Callable[..., Result]


def history(*rounds: bytes, collapse: bool = True) -> History:
    made = History()
    for at, each in enumerate(rounds):
        made.add(each)
        made.look(at)
        made.close(collapse)
    return made


def test_a_round_that_was_the_same_as_the_one_before_counts_once() -> None:
    assert history(b"a", b"b", b"b", b"b").key(9)[:2] == history(b"a", b"b").key(9)[:2]
    assert history(b"a", b"b", b"b", collapse=False).base != history(b"a", b"b").base


def test_rounds_that_come_again_in_their_order_count_once() -> None:
    """Of the times at which it looked at its clock, those of the last ones."""
    looks, again = [b"look", b"look too", b"renew"], history(b"a", *[b"look", b"look too", b"renew"] * 3)
    assert again.base == history(b"a", *looks).base
    assert again.looks == [0, 7, 8, 9]
    assert history(b"a", b"b", b"c", b"a", b"b").base != history(b"a", b"b").base
    further = history(b"a", *looks, *looks, b"look")
    assert further.base == history(b"a", *looks, b"look").base
    assert further.looks == [0, 4, 5, 6, 7]


def many_tries(own: bank.Bank) -> Any:
    """Enough for a waiter that comes early, and for no other: it goes in while the holder sleeps."""
    return bank.tries(10, 0.03)(own)


def test_a_waiter_that_counts_its_tries_counts_them_within_the_slack_too(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls of a kind that was not watched for long are not taken for one. (The control takes them.)"""
    deposit = bank.locked_by(many_tries, work=0.2)
    assert explore(deposit).worst == "lost"
    monkeypatch.setattr(timeline, "watched_well", lambda run, task: True)
    assert explore(deposit).worst == UNBROKEN


def renewed(times: int) -> Callable[[bank.Bank], Any]:
    """A lease of a second, and a thread that looks twice before it renews it, so often."""

    def renew(own: bank.Bank, stop: threading.Event) -> None:
        for _ in range(times):
            for _ in range(2):
                if stop.wait(0.3) or not own.redis.pttl("lock"):
                    return
            own.redis.pexpire("lock", 1000)

    @contextmanager
    def lock(own: bank.Bank) -> Iterator[None]:
        while not own.redis.set("lock", 1, nx=True, px=1000):
            time.sleep(0.5)
        stop = threading.Event()
        threading.Thread(target=renew, args=(own, stop), daemon=True).start()
        yield
        own.redis.delete("lock")
        stop.set()

    return lock


@pytest.mark.parametrize(("times", "word"), [(1000, UNBROKEN), (30, "lost")])
def test_a_renewal_that_ends_after_a_while_is_seen_ending(explore: Explore, times: int, word: str) -> None:
    """Though its turns were taken for one."""
    assert explore(bank.locked_by(renewed(times), work=20.0)).worst == word


def test_how_often_a_worker_has_drawn_here_changes_nothing_there() -> None:
    often, seldom = Worker("A", 0), Worker("A", 0)
    for _ in range(3):
        often.chance("sleep").random()
    assert often.chance("name").random() == seldom.chance("name").random()
    assert often.chance("sleep").random() != seldom.chance("sleep").random()
    assert Worker("B", 1).chance("name").random() != Worker("A", 0).chance("name").random()
