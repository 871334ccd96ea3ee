"""The engine on a tiny bank: what loses money is found, what keeps it is exhausted, what hangs is stalled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locks.fair_lock import FairLock
from locks.fair_lock.wire import Wire
from locks.naive_lock import NaiveLock
from locks.setnx import SetnxLock
from locks.token_lock import TokenLock
from lost_update_lab.gates.postgres.describe import describe
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.search.search import SearchResult
from lost_update_lab.servers.redis import server as servers_redis
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def naive(own: bank.Bank) -> Any:
    return NaiveLock("lock", redis=own.redis)


def setnx(own: bank.Bank) -> Any:
    return SetnxLock("lock", redis=own.redis)


def token(own: bank.Bank) -> Any:
    return TokenLock("lock", redis=own.redis, lease=2.0)


def fair(own: bank.Bank) -> Any:
    return FairLock("lock", redis=own.redis, lease=10.0)


def test_without_a_lock_money_is_lost(explore: Explore) -> None:
    result = explore(bank.no_lock)
    assert (result.worst, result.exhausted) == ("lost", True)
    loss = result.smallest("lost")
    assert loss
    assert [(s.worker, s.command.split()[0]) for s in loss.steps] in (
        [("A", "SELECT"), ("B", "SELECT"), ("B", "UPDATE"), ("A", "UPDATE")],
        [("B", "SELECT"), ("A", "SELECT"), ("A", "UPDATE"), ("B", "UPDATE")],
        [("A", "SELECT"), ("B", "SELECT"), ("A", "UPDATE"), ("B", "UPDATE")],
    )


@pytest.mark.parametrize("deposit", [bank.select_for_update, bank.hidden_for_update, bank.optimistic])
def test_right_ones_are_exhausted_and_kept_under_one_fault(explore: Explore, deposit: Any) -> None:
    result = explore(deposit, faults=1)
    assert (result.worst, result.exhausted, result.cause) == (UNBROKEN, True, "")
    assert {Fault.CRASH, Fault.LOST_REPLY} <= result.fired == result.applicable


def streamed(own: bank.Bank, amount: int) -> str:
    """Reads row by row: what it has read is part of the state all the same."""
    with own.sql.cursor() as cursor:
        ((balance,),) = cursor.stream("SELECT balance FROM account WHERE id = 1")
    own.write(balance + amount)
    return "ok"


def two_statements_in_one(own: bank.Bank, amount: int) -> str:
    """The first word says that it reads; the second statement writes."""
    balance = own.read()
    own.sql.execute(f"SELECT 1; UPDATE account SET balance = {balance + amount} WHERE id = 1")
    return "ok"


@pytest.mark.deep
@pytest.mark.parametrize("deposit", [streamed, two_statements_in_one])
def test_every_way_to_read_and_to_write_is_a_step(explore: Explore, deposit: Any) -> None:
    full, every = explore(deposit), explore(deposit, reduction="none")
    assert (full.worst, every.worst, full.exhausted, every.exhausted) == ("lost", "lost", True, True)
    assert full.finals == every.finals


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT balance FROM account", True),
        ("SELECT balance FROM account;", True),
        ("SET LOCAL lock_timeout = '2s'", True),
        ("BEGIN; UPDATE account SET balance = 1; COMMIT", False),
        ("SET LOCAL lock_timeout = '2s'; SELECT 1 FROM account FOR UPDATE", False),
        ("SELECT 1; UPDATE account SET balance = 1", False),
        ('SELECT "public"."deposit"(5)', False),
        ("SELECT deposit(5)", False),
        ("SELECT 1 AS begun INTO ready", False),
        ("WITH x AS (UPDATE account SET balance = 1 RETURNING id) SELECT id FROM x", False),
    ],
)
def test_what_only_reads(sql: str, reads: bool) -> None:
    assert describe("_execute_gen", {"query": sql, "params": None}, idle=False).reads is reads


def test_reading_before_locking_loses(explore: Explore) -> None:
    assert explore(bank.select_for_update_late).worst == "lost"


def test_opposite_order_deadlocks(explore: Explore) -> None:
    result = explore(bank.opposite_order)
    assert (result.worst, result.exhausted) == ("stalled", True)
    assert "deadlock" in [step.kind for step in result.smallest("stalled").steps]


def test_naive_lock_loses_without_a_fault(explore: Explore) -> None:
    result = explore(bank.locked_by(naive))
    assert (result.worst, result.exhausted) == ("lost", True)


def never_unlocks(own: bank.Bank, amount: int) -> str:
    own.sql.execute("SELECT pg_advisory_lock(1)")
    return bank.add(own, amount)


def returns_without_commit(own: bank.Bank, amount: int) -> str:
    """Its `refused` forgets what it has begun."""
    own.sql.execute("BEGIN")
    own.sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE")
    return "refused"


@pytest.mark.parametrize("deposit", [never_unlocks, returns_without_commit])
def test_what_a_worker_leaves_locked_stalls_the_others(explore: Explore, deposit: Any) -> None:
    for reduction in ("full", "none"):
        result = explore(deposit, reduction=reduction)
        assert (result.worst, result.exhausted, result.cause) == ("stalled", True, "")


@pytest.mark.deep
def test_setnx_and_a_crash_stall_everyone(explore: Explore) -> None:
    assert explore(bank.locked_by(setnx)).worst == UNBROKEN
    result = explore(bank.locked_by(setnx), faults=1, kinds=frozenset({Fault.CRASH}))
    assert (result.worst, result.exhausted) == ("stalled", True)


@pytest.mark.deep
def test_token_lock_and_a_pause_lose(explore: Explore) -> None:
    assert explore(bank.locked_by(token)).worst == UNBROKEN
    result = explore(bank.locked_by(token), faults=1, kinds=frozenset({Fault.PAUSE}))
    assert (result.worst, result.exhausted) == ("lost", True)


@pytest.mark.deep
def test_fair_lock_with_a_fault_keeps_the_money_and_no_waiter_hangs(explore: Explore) -> None:
    kinds = frozenset({Fault.CRASH, Fault.LOST_REPLY, Fault.RENEWAL_LIVES})
    result = explore(bank.locked_by(fair), faults=1, kinds=kinds)
    assert (result.worst, result.exhausted, result.cause) == (UNBROKEN, True, "")
    assert result.fired == kinds


def quiet(own: bank.Bank) -> Any:
    lock = fair(own)
    lock._home.questions.busy = True
    return lock


@pytest.mark.deep
@pytest.mark.parametrize(
    "kind",
    [
        None,
        Fault.CRASH,
        Fault.LOST_REPLY,
    ],
)
def test_a_question_without_a_reply_is_explored_too(
    explore: Explore, kind: Fault | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLIENT REPLY SKIP: fair-lock asks so after a release that woke another."""
    told, tell = [], Wire.tell
    monkeypatch.setattr(Wire, "tell", lambda *of: told.append(of) or tell(*of))
    kinds = frozenset({kind} - {None})
    result = explore(bank.locked_by(quiet), faults=len(kinds), kinds=kinds)
    assert (result.worst, result.exhausted, result.cause) == (UNBROKEN, True, "")
    assert result.fired == kinds
    assert told


@pytest.mark.deep
def test_what_a_script_asks_of_the_servers_clock_is_virtual(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first number that fair-lock gives is the server's time."""
    first = explore(bank.locked_by(fair))
    assert explore(bank.locked_by(fair)).finals == first.finals
    monkeypatch.setattr(servers_redis, "virtual", lambda words, raw, *_: raw)
    assert explore(bank.locked_by(fair)).finals != first.finals, "the control: without the gate it is not"


@pytest.mark.deep
def test_a_section_longer_than_the_lease_loses_without_a_fault(explore: Explore) -> None:
    assert explore(bank.locked_by(token, work=4.0)).worst == "lost"


@pytest.mark.deep
def test_a_lock_that_goes_in_after_three_tries_is_found(explore: Explore) -> None:
    """Two earlier searches called it exhausted without a loss: a waiter was not let poll again. Its three tries
    fit into the slack, or into a pause, or into the holder's work."""
    assert explore(bank.locked_by(bank.three_tries(0.03))).worst == "lost"
    assert explore(bank.locked_by(bank.three_tries(0.5)), faults=1).worst == "lost"
    assert explore(bank.locked_by(bank.three_tries(0.5), work=3.0)).worst == "lost"
