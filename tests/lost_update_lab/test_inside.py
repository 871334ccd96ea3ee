"""What counts of a transaction, and for how long; and of a look that takes several commands, what came between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.model.thread_history import ThreadHistory
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.servers.draws import Draws
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def copies_the_other(own: bank.Bank, amount: int) -> str:
    """A's command says nothing of what it has found. It commits only when B is done, and B's 200 left no trace."""
    if amount == 20:
        own.sql.execute("UPDATE account SET balance = 200 WHERE id = 2")
        own.sql.execute("UPDATE account SET balance = 100, version = 1 WHERE id = 2")
        return "refused"
    with own.sql.transaction():
        own.sql.execute(
            "UPDATE account SET balance = (SELECT balance FROM account WHERE id = 2) WHERE id = 1"
        )
        if not own.sql.execute("SELECT version FROM account WHERE id = 2").fetchone()[0]:
            raise psycopg.Rollback
    return "refused"


@pytest.mark.deep
def test_what_an_open_transaction_has_met_makes_states(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(The control forgets it: what was written over 200 is taken for what was written over 100.)"""
    both = explore(copies_the_other, reduction="none")
    assert explore(copies_the_other).finals == both.finals
    monkeypatch.setattr(ThreadHistory, "meets", lambda *_: None)
    monkeypatch.setattr(Draws, "hidden", lambda _: b"")  # who wrote first tells it here, too
    assert explore(copies_the_other).finals < both.finals


def rolls_back_first(own: bank.Bank, amount: int) -> str:
    """Whatever its first transaction has met: nothing is left of it."""
    with own.sql.transaction():
        own.sql.execute("UPDATE account SET version = version + 1 WHERE id = %s", [amount // 10])
        raise psycopg.Rollback
    return bank.select_for_update(own, amount)


@pytest.mark.deep
def test_a_finished_transaction_leaves_only_its_replies(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = explore(rolls_back_first)
    assert (found.worst, found.exhausted) == (UNBROKEN, True)
    assert found.finals == explore(rolls_back_first, reduction="none").finals
    monkeypatch.setattr(ThreadHistory, "is_out", lambda *_: None)
    kept = explore(rolls_back_first)
    assert (kept.finals, kept.states > found.states) == (found.finals, True)


@contextmanager
def looks_twice(own: bank.Bank) -> Iterator[None]:
    while not own.redis.set("lock", "mine", nx=True):
        own.redis.get("whatever")
        time.sleep(0.5)
    yield
    own.redis.delete("lock")


def by_two_looks(own: bank.Bank) -> Any:
    return looks_twice(own)


def test_what_comes_between_two_commands_of_a_look_is_news(explore: Explore) -> None:
    """The lock is free by the time of the second one: the waiter has not seen it yet, and looks again."""
    result = explore(bank.locked_by(by_two_looks), faults=1, kinds=frozenset({Fault.PAUSE}))
    assert (result.worst, result.exhausted) == (UNBROKEN, True)
