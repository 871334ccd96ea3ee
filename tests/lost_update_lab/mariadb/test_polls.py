"""Who polls for a lock of a name hears when it is given back, although no row and no key shows it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pymysql
import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.search.search import SearchResult
from tests.lost_update_lab.mariadb.bank import Bank, no_lock

Explore = Callable[..., tuple[SearchResult, Bank]]


def polls(every: float) -> Callable[[Bank, int], str]:
    """`every`: s between two polls."""

    def deposit(bank: Bank, amount: int) -> str:
        while not bank.ask("SELECT GET_LOCK('account 1', 0)")[0][0]:
            time.sleep(every)
        no_lock(bank, amount)
        bank.ask("SELECT RELEASE_LOCK('account 1')")
        return "ok"

    return deposit


@pytest.mark.deep
@pytest.mark.parametrize("every", [0.08, 1.0])
def test_a_name_that_is_given_back_is_news(explore: Explore, every: float) -> None:
    """A waiter that had polled in vain during a pause slept on, and was said to wait for ever."""
    result, _ = explore(polls(every), faults=1, kinds=frozenset({Fault.PAUSE, Fault.CRASH}))
    assert (result.cause, result.exhausted, result.worst) == ("", True, UNBROKEN)


def waits_there_and_here(tries: int) -> Callable[[Bank, int], str]:
    """It waits in the server for 2 s, and then at home, and goes in without the lock after so many `tries`."""

    def deposit(bank: Bank, amount: int) -> str:
        for _ in range(tries):
            if bank.ask("SELECT GET_LOCK('account 1', 2)")[0][0]:
                break
            time.sleep(0.5)
        no_lock(bank, amount)
        bank.ask("SELECT RELEASE_LOCK('account 1')")
        return "ok"

    return deposit


@pytest.mark.deep
@pytest.mark.parametrize(("tries", "word"), [(1_000_000, UNBROKEN), (10, "lost")])
def test_a_wait_in_the_server_and_one_at_home_are_one_poll(explore: Explore, tries: int, word: str) -> None:
    """They were two rounds, never the same as the one before: a search of 50,000 decisions that had no end. One that
    counts its tries does not poll."""
    result, _ = explore(waits_there_and_here(tries), faults=1, kinds=frozenset({Fault.PAUSE, Fault.CRASH}))
    assert (result.cause, result.exhausted, result.worst) == ("", True, word)


def keeps(bank: Bank, amount: int) -> str:
    """The first one never gives it back, and lives on."""
    if amount == 10:
        bank.ask("SELECT GET_LOCK('account 1', 60)")
        return "no deposit"
    return polls(1.0)(bank, amount)


def test_a_name_that_is_never_given_back_is(explore: Explore) -> None:
    result, _ = explore(keeps)
    assert (result.exhausted, result.worst) == (True, "stalled")


@pytest.mark.deep
def test_which_names_a_session_has(explore: Explore) -> None:
    """Two of them, and one twice: it is the server that knows."""

    def deposit(bank: Bank, amount: int) -> str:
        for name in ("a", "a", "b"):
            bank.ask("SELECT GET_LOCK(%s, 60)", name)
        bank.ask("SELECT RELEASE_LOCK('a')")
        no_lock(bank, amount)
        bank.ask("SELECT RELEASE_ALL_LOCKS()")
        return "ok"

    result, _ = explore(deposit, faults=1, kinds=frozenset({Fault.CRASH}))
    assert (result.cause, result.exhausted, result.worst) == ("", True, UNBROKEN)


def refused(how: str) -> Callable[[Bank, int], str]:
    """The first one locks a row and changes nothing; the other one does not wait for it, and tries again."""

    def deposit(bank: Bank, amount: int) -> str:
        while True:
            try:
                with bank.transaction():
                    if bank.ask("SELECT id FROM account WHERE id = 1 FOR UPDATE " + how * (amount > 10)):
                        bank.read()
                        return "ok"
            except pymysql.OperationalError:
                pass
            time.sleep(0.08)

    return deposit


@pytest.mark.deep
@pytest.mark.parametrize("how", ["NOWAIT", "SKIP LOCKED"])
def test_a_row_that_is_given_back_unchanged_is_news(explore: Explore, how: str) -> None:
    result, _ = explore(refused(how), faults=1, kinds=frozenset({Fault.CRASH}))
    assert (result.cause, result.exhausted) == ("", True)
    assert "stalled" not in result.words
