"""Rounds that come again and again: which of them are one, and what would be missed if more of them were."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.model.thread_history import ThreadHistory
from lost_update_lab.model.workers import WorkerProcess
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.schedule import virtual_clock
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def history(*rounds: bytes, collapse: bool = True) -> ThreadHistory:
    made = ThreadHistory()
    for at, each in enumerate(rounds):
        made.add(each)
        made.look(at)
        made.close(at, collapse)
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


def rounds(*polls: tuple[tuple[str, ...], tuple[str, ...]]) -> list[tuple[bool, bool]]:
    """Of each round whether it was in vain, and whether it took two rounds to be a poll. Those of a poll: what was sent
    when it began to wait in the server, and when it began to wait at home."""
    made, found = ThreadHistory(), []
    for there, here in polls:
        for sent, in_server in ((there, True), (here, False)):
            made.add(*(text.encode() for text in sent), b"server" if in_server else b"home")
            made.sent += sent
            found.append((made.close(0, collapse=True, in_server=in_server), made.in_two))
    return found


def test_a_wait_in_a_server_and_one_at_home_are_one_poll() -> None:
    """Unless something else is looked at between them, which then is seen first, or last."""
    no, yes = (False, False), (True, True)
    assert rounds(*[((), ("GET_LOCK",))] * 3) == [no, no, no, yes, yes, yes]
    assert rounds(*[(("BEGIN",), ("SELECT … FOR UPDATE", "ROLLBACK"))] * 2) == [no, no, no, yes]
    assert rounds(*[((), ("GET_LOCK", "SELECT"))] * 3) == [no] * 6
    assert rounds(*[(("SELECT",), ("GET_LOCK",))] * 3) == [no] * 6
    assert rounds(((), ("GET_LOCK",)), ((), ("GET_LOCK",)), ((), ("another",))) == [no, no, no, yes, yes, no]


def many_tries(own: bank.Bank) -> Any:
    """Enough for a waiter that comes early, and for no other: it goes in while the holder sleeps."""
    return bank.tries(10, 0.03)(own)


@pytest.mark.deep
def test_a_waiter_that_counts_its_tries_counts_them_within_the_slack_too(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls of a kind that was not watched for long are not taken for one. (The control takes them.)"""
    deposit = bank.locked_by(many_tries, work=0.2)
    assert explore(deposit).worst == "lost"
    monkeypatch.setattr(virtual_clock, "watched_well", lambda run, task: True)
    monkeypatch.setattr(virtual_clock, "gives_up", lambda run, task: None)
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


def test_a_thread_that_was_watched_is_known_by_its_last_round() -> None:
    """And by what it did before the first one of that kind. What is left of a lease appears in figures that change."""

    def turns(*told: bytes, forgets: bool = True) -> bytes:
        made = ThreadHistory()
        made.add(b"begins")
        made.close(0, collapse=False)
        for left in told:
            made.add(b"PTTL lock", left=left)
            made.close(1, collapse=False, forgets=forgets)
        return made.base

    assert turns(b"4700", b"4400", b"4100") == turns(b"4100") != turns(b"4400")
    assert turns(b"4700", b"4100", forgets=False) != turns(b"4100", forgets=False)


def test_since_when_a_thread_does_nothing_new() -> None:
    made = ThreadHistory()
    for now, did in enumerate((b"look", b"look", b"renew", b"look", b"renew")):
        made.add(did)
        made.close(now, collapse=False)
    assert (len(made.kinds), made.steady_since) == (2, 2)


@pytest.mark.deep
@pytest.mark.parametrize(("times", "word"), [(30, "lost"), (1000, UNBROKEN)])
def test_a_renewal_that_ends_after_a_while_is_seen_ending(explore: Explore, times: int, word: str) -> None:
    """Though its turns were taken for one."""
    assert explore(bank.locked_by(renewed(times), work=20.0)).worst == word


@pytest.mark.deep
@pytest.mark.parametrize(("times", "word"), [(1000, "stalled"), (5, UNBROKEN)])
def test_a_renewal_whose_worker_has_died_goes_on_for_ever_or_ends(
    explore: Explore, times: int, word: str
) -> None:
    """Beside a waiter that polls in another rhythm: each lateness of each turn was a history of its own."""
    deposit, lives = bank.locked_by(renewed(times)), frozenset({Fault.RENEWAL_LIVES})
    result = explore(deposit, faults=1, kinds=lives)
    assert (result.worst, result.exhausted) == (word, True)


@pytest.mark.deep
def test_the_turns_of_a_renewal_count_if_it_was_not_watched(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that ends after its third turn. The control takes all threads for such without a memory, and misses how
    some schedules end."""
    deposit = bank.locked_by(renewed(3), work=4.0)
    counted = explore(deposit)
    monkeypatch.setattr(virtual_clock, "known_by_its_turn", lambda run, task: not task.main)
    forgetful = explore(deposit)
    assert counted.exhausted
    assert forgetful.finals < counted.finals


def test_how_often_a_worker_has_drawn_here_changes_nothing_there() -> None:
    often, seldom = WorkerProcess("A", 0), WorkerProcess("A", 0)
    for _ in range(3):
        often.draws("sleep").random()
    assert often.draws("name").random() == seldom.draws("name").random()
    assert often.draws("sleep").random() != seldom.draws("sleep").random()
    assert WorkerProcess("B", 1).draws("name").random() != WorkerProcess("A", 0).draws("name").random()


@pytest.mark.deep
@pytest.mark.parametrize("poll", [0.08, 1.0])
def test_a_lock_of_a_session_that_is_given_back_is_news(explore: Explore, poll: float) -> None:
    """No row and no key shows it. A waiter that had polled in vain during a pause slept on, and was said to wait for
    ever."""

    @contextmanager
    def polled(own: bank.Bank) -> Iterator[None]:
        while not own.sql.execute("SELECT pg_try_advisory_lock(7)").fetchone()[0]:
            time.sleep(poll)
        yield
        own.sql.execute("SELECT pg_advisory_unlock(7)")

    result = explore(bank.locked_by(polled), faults=1, kinds={Fault.PAUSE, Fault.CRASH})
    assert (result.cause, result.exhausted, result.worst) == ("", True, UNBROKEN)
