"""Schedules of known steps, run in memory: the search is the same, state by state, as when each is executed.

An answer that depends on something that was left out is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from locks.naive_lock import NaiveLock
from locks.token_lock import TokenLock
from locks.watchdog_mended import WatchdogMendedLock
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import SECOND, Fault
from lost_update_lab.model.digest import digest
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search import search
from lost_update_lab.search.search import Search
from lost_update_lab.servers.postgres import transactions
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis import memoised
from lost_update_lab.servers.redis.server import RedisServer
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]
LONG = pytest.mark.deep


def naive(own: bank.Bank) -> Any:
    return NaiveLock("lock", redis=own.redis)


def token(own: bank.Bank) -> Any:
    return TokenLock("lock", redis=own.redis, lease=2.0)


def mended(own: bank.Bank) -> Any:
    return WatchdogMendedLock("lock", redis=own.redis)


def in_a_transaction(own: bank.Bank, amount: int) -> str:
    with own.sql.transaction():
        return bank.add(own, amount)


def queued(own: bank.Bank, amount: int) -> str:
    """Redis executes what MULTI has queued at EXEC, and not before."""
    with own.redis.pipeline() as together:
        together.incr("visitors").expire("visitors", 2)
        together.execute()
    return bank.add(own, amount)


def gives_way(own: bank.Bank, amount: int) -> str:
    """A worker that meets a locked row ends its transaction, and reads what it may read meanwhile."""
    for _ in range(3):
        try:
            with own.sql.transaction():
                row = own.sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE NOWAIT").fetchone()
                own.write(row[0] + amount)
            return "ok"
        except psycopg.errors.LockNotAvailable:
            own.read()
    raise bank.GaveUp


def told(result: SearchResult) -> tuple[Any, ...]:
    return result.counts, result.finals, result.schedules, result.steps, result.states, result.exhausted


@pytest.mark.deep
@pytest.mark.parametrize(
    ("deposit", "kinds"),
    [
        (bank.no_lock, frozenset(Fault)),
        pytest.param(bank.optimistic, frozenset({Fault.LOST_REPLY, Fault.CRASH}), marks=LONG),
        (in_a_transaction, frozenset({Fault.LOST_REPLY, Fault.PAUSE})),
        (bank.select_for_update, frozenset({Fault.CRASH, Fault.LOST_REPLY})),
        pytest.param(bank.opposite_order, frozenset({Fault.CRASH}), marks=LONG),
        (gives_way, frozenset({Fault.LOST_REPLY})),
        pytest.param(gives_way, frozenset({Fault.CRASH, Fault.PAUSE}), marks=LONG),
        (queued, frozenset({Fault.CRASH, Fault.FAILOVER, Fault.CLOCK_JUMP})),
        (bank.locked_by(naive), frozenset({Fault.CRASH, Fault.FAILOVER})),
        pytest.param(bank.locked_by(token), frozenset({Fault.PAUSE, Fault.CLOCK_JUMP}), marks=LONG),
        pytest.param(bank.locked_by(token), frozenset({Fault.FAILOVER, Fault.LOST_REPLY}), marks=LONG),
        (bank.locked_by(mended), frozenset({Fault.RENEWAL_DIES})),
    ],
)
def test_in_memory_or_executed_the_search_is_the_same(explore: Explore, deposit: Any, kinds: Any) -> None:
    assert_the_same_in_memory(explore, deposit, kinds)


def assert_the_same_in_memory(explore: Explore, deposit: Any, kinds: Any) -> None:
    bounds = {"faults": 1, "kinds": kinds, "patience": SECOND}
    in_memory, executed = explore(deposit, **bounds), explore(deposit, **bounds, in_memory=False)
    assert told(in_memory) == told(executed)
    assert in_memory.exhausted, in_memory.cause
    assert executed.in_memory == 0 < in_memory.in_memory


@pytest.mark.deep
def test_each_in_memory_schedule_reaches_the_same_state_when_executed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOK_EVERY", 1)
    result = explore(bank.locked_by(token), faults=1, patience=SECOND)
    assert result.exhausted, result.cause
    assert result.in_memory == 0


# -- must-fail: what an answer depends on is left out -----------------------------------------------------------------


def noticed(explore: Explore, deposit: Any, monkeypatch: pytest.MonkeyPatch, **bounds: Any) -> str:
    """Each schedule in memory is executed as well. → why the search ended"""
    monkeypatch.setattr(search, "LOOK_EVERY", 1)
    result = explore(deposit, faults=1, patience=SECOND, **bounds)
    assert not result.exhausted
    return result.cause


@pytest.mark.answers_change
def test_answers_that_forget_what_is_committed_are_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(way: Any, contents: bytes, who: Any, op: Any, *how: object) -> bytes:
        return digest(repr((sorted(way.inside.items()), who, how)).encode(), op.identity)

    monkeypatch.setattr(transactions.PostgresWay, "question", forgetful)
    assert "not repeatable" in noticed(explore, bank.no_lock, monkeypatch)


@pytest.mark.deep
@pytest.mark.answers_change
def test_answers_that_forget_how_a_transaction_came_there_are_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(way: Any, contents: bytes, who: Any, op: Any, level: Any, *how: object) -> bytes:
        _strict, _counts, _drawn, *rest = how
        return digest(contents, repr((who, level, rest)).encode(), op.identity)

    monkeypatch.setattr(transactions.PostgresWay, "question", forgetful)
    assert "not repeatable" in noticed(explore, as_often_as_told, monkeypatch)


def as_often_as_told(own: bank.Bank, amount: int) -> str:
    """What a COMMIT leaves behind depends on what came before it, though it was answered in the same way."""
    times = own.redis.incr("visitors")
    with own.sql.transaction():
        for _ in range(times):
            own.sql.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", [amount // 10])
    return "ok"


@pytest.mark.answers_change
def test_answers_that_forget_the_keys_are_noticed(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    right = memoised.RedisAnswers.question

    def forgetful(answers: Any, of: Any, *rest: Any) -> Any:
        asked = right(answers, of, *rest)
        return asked and asked._replace(contents=b"")

    monkeypatch.setattr(memoised.RedisAnswers, "question", forgetful)
    assert "not repeatable" in noticed(explore, bank.locked_by(naive), monkeypatch)


#: the version is no part of a state here, but a reader receives it
BESIDES = "SELECT id, balance, version FROM account ORDER BY id"


def signed(own: bank.Bank, amount: int) -> str:
    """B writes down whether A was there; A reads that."""
    if amount == 10:
        own.redis.set("visitor", 1)
    else:
        seen = own.redis.get("visitor")
        own.sql.execute("UPDATE account SET version = %s WHERE id = 1", [2 if seen else 1])
    own.sql.execute("SELECT version FROM account WHERE id = 1").fetchone()
    return "ok"


@pytest.mark.deep
def test_what_can_be_read_and_makes_no_state_is_part_of_a_question(
    harness: Callable[..., Harness], explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOK_EVERY", 1)
    result = explore(signed, faults=1, contents=BESIDES, besides=True)
    assert result.exhausted, result.cause
    postgres = harness(signed, contents=BESIDES, besides=True).servers["postgres"]
    assert isinstance(postgres, PostgresServer)
    before = postgres.contents(), postgres.everything()
    postgres.admin.execute("UPDATE account SET version = 7 WHERE id = 1")
    postgres.touched()
    assert postgres.contents() == before[0]
    assert postgres.everything() != before[1]


def granted_twice(own: bank.Bank, amount: int) -> str:
    """A lease that is granted again in the moment in which it was granted ends when it would have ended."""
    own.redis.set("lease", 1, px=2000)
    own.redis.eval("return redis.call('PEXPIRE', KEYS[1], ARGV[1])", 1, "lease", 2000)
    own.redis.eval("return redis.call('GET', KEYS[1])", 1, "lease")
    return bank.add(own, amount)


def test_a_lease_that_is_granted_again_at_once_is_known_as_granted(harness: Callable[..., Harness]) -> None:
    """Otherwise it would count as one that exists, and a later renewal would not be known."""
    found = harness(granted_twice)
    assert Search(found).explore().exhausted
    server = found.servers["redis"]
    assert isinstance(server, RedisServer)
    renewed = [a for asked, a in server.answers.known.items() if b"KEYS[1], ARGV[1]" in str(asked).encode()]
    stands = [a for asked, a in server.answers.known.items() if b"'GET'" in str(asked).encode()]
    assert {answer.leases for answer in renewed} == {(("lease", 2 * SECOND),)}
    assert {answer.leases for answer in stands} == {(("lease", None),)}
