"""One worker's real code, fed with what is known: the search is the same as if it ran on the servers.

What it is told wrongly is noticed by real code on the servers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import redis

from locks.token_lock import TokenLock
from locks.watchdog_mended import WatchdogMendedLock
from lost_update_lab.gates.postgres import noting
from lost_update_lab.harness.feeding import Feeding
from lost_update_lab.model.bounds import SECOND, Fault
from lost_update_lab.model.errors import NotTheSame
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.model.workers import State
from lost_update_lab.runs.fed_run import FedRun
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search import search
from lost_update_lab.search.search import Search
from tests.lost_update_lab import bank
from tests.lost_update_lab.conftest import opened

Explore = Callable[..., SearchResult]
LONG = pytest.mark.deep


def token(own: bank.Bank) -> Any:
    return TokenLock("lock", redis=own.redis, lease=2.0)


def mended(own: bank.Bank) -> Any:
    return WatchdogMendedLock("lock", redis=own.redis)


def refused(own: bank.Bank, amount: int) -> str:
    """An error, with what psycopg reads in it."""
    with pytest.raises(psycopg.errors.UniqueViolation) as raised, own.sql.transaction():
        own.sql.execute("INSERT INTO account VALUES (1, %s, 0)", [amount])
    diag = raised.value.diag
    assert (diag.constraint_name, diag.message_detail) == ("account_pkey", "Key (id)=(1) already exists.")
    return bank.add(own, amount)


def all_types(own: bank.Bank, amount: int) -> str:
    """Values of types that psycopg reads by their number, and one that is NULL."""
    asked = (
        "SELECT balance::numeric(10, 2), ARRAY[balance, NULL], jsonb_build_object('b', balance), NULL::uuid"
    )
    for _ in range(2):
        found = own.sql.execute(f"{asked} FROM account WHERE id = 1").fetchone()
    own.sql.execute(
        "UPDATE account SET balance = %s WHERE id = 1", [int(found[0]) + found[2]["b"] // 100 + amount]
    )
    return f"{found!r}"[:4]


def of_its_own(own: bank.Bank, amount: int) -> str:
    """It connects, and closes its connection."""
    with psycopg.connect(own.sql.info.dsn) as link:
        row = link.execute("SELECT balance FROM account WHERE id = 1").fetchone()
        link.execute("UPDATE account SET balance = %s WHERE id = 1", [row[0] + amount])
    return "ok"


def of_several(own: bank.Bank, amount: int) -> str:
    """Two statements in one text."""
    cursor = own.sql.execute("SELECT 'the balance is'; SELECT balance FROM account WHERE id = 1")
    assert cursor.nextset()
    own.sql.execute("UPDATE account SET balance = %s WHERE id = 1", [cursor.fetchone()[0] + amount])
    return "ok"


def of_another_type(own: bank.Bank, amount: int) -> str:
    """An error of Redis, one in the reply to EXEC, and a WATCH that is broken."""
    own.redis.incr("visitors")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        own.redis.lpush("visitors", 1)
    with own.redis.pipeline() as together:
        together.watch("visitors")
        seen = int(together.get("visitors"))
        together.multi()
        together.set("visitors", seen + 1)
        try:
            together.execute()
        except redis.WatchError:
            return "broken"
    return bank.add(own, amount)


def told(result: SearchResult) -> tuple[Any, ...]:
    return result.counts, result.finals, result.schedules, result.steps, result.states, result.exhausted


def searched(urls: tuple[str, str], deposit: Any, **bounds: Any) -> tuple[SearchResult, int, int]:
    """The result; how often a worker was fed, and how often the servers were asked."""
    with opened(urls, deposit, **bounds) as harness:
        result = Search(harness).explore()
        return result, harness.feeding.runs, harness.runs


@pytest.mark.parametrize(
    ("deposit", "kinds"),
    [
        (bank.no_lock, {Fault.LOST_REPLY, Fault.CRASH}),
        (bank.select_for_update, {Fault.LOST_REPLY}),
        (refused, {Fault.LOST_REPLY}),
        (all_types, {Fault.LOST_REPLY}),
        (of_its_own, {Fault.LOST_REPLY}),
        (of_several, {Fault.LOST_REPLY}),
        pytest.param(of_another_type, {Fault.FAILOVER}, marks=LONG),
        pytest.param(bank.optimistic, set(Fault), marks=LONG),
        pytest.param(bank.locked_by(token), set(Fault), marks=LONG),
        pytest.param(bank.locked_by(mended), {Fault.RENEWAL_DIES}, marks=LONG),
    ],
)
def test_fed_or_on_the_servers_the_search_is_the_same(
    explorer_urls: tuple[str, str], deposit: Any, kinds: set[Fault]
) -> None:
    bounds = {"faults": 1, "kinds": frozenset(kinds), "patience": SECOND}
    ours, fed, _ = searched(explorer_urls, deposit, **bounds)
    theirs, none, _ = searched(explorer_urls, deposit, **bounds, fed=False)
    assert told(ours) == told(theirs)
    assert ours.exhausted, ours.cause
    assert none == 0 < fed


def test_a_worker_that_is_fed_asks_no_server(explorer_urls: tuple[str, str]) -> None:
    bounds = {"faults": 1, "kinds": frozenset({Fault.RENEWAL_DIES}), "patience": SECOND}
    _, _, executed = searched(explorer_urls, bank.locked_by(mended), **bounds)
    _, _, all_executed = searched(explorer_urls, bank.locked_by(mended), **bounds, fed=False)
    assert executed < all_executed


@pytest.mark.deep
def test_what_was_fed_is_the_same_on_the_servers(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each schedule that was computed in memory is run by real code as well."""
    monkeypatch.setattr(search, "LOOK_EVERY", 1)
    result = explore(bank.locked_by(token), faults=1, patience=SECOND)
    assert result.exhausted, result.cause
    assert result.in_memory == 0


# -- must-fail --------------------------------------------------------------------------------------------------------


def test_code_that_was_fed_wrongly_is_noticed(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the rows that the first one had read, whatever is committed since."""
    right, first = noting.keep, dict[bytes, Any]()

    def forgetful(world: Any, op: Any, said: Any, result: Any) -> None:
        right(world, op, said, first.setdefault(op.identity, result))

    monkeypatch.setattr(noting, "keep", forgetful)
    monkeypatch.setattr(search, "LOOK_EVERY", 1)
    result = explore(bank.locked_by(token), faults=1, patience=SECOND)
    assert not result.exhausted
    assert "does something else" in result.cause


def test_a_worker_that_cannot_be_fed_runs_on_the_servers(
    explorer_urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails while it is fed, the search is the same."""
    bounds = {"faults": 1, "kinds": frozenset({Fault.LOST_REPLY})}
    usual, *_ = searched(explorer_urls, bank.no_lock, **bounds)

    def fails(*_: Any) -> None:
        raise RuntimeError("no reply can be played")

    monkeypatch.setattr(Feeding, "_begin", fails)
    found, fed, _ = searched(explorer_urls, bank.no_lock, **bounds)
    assert told(found) == told(usual)
    assert fed > 0


def test_a_path_that_is_not_that_of_this_code(explorer_urls: tuple[str, str]) -> None:
    """A step for which its worker is not ready would never end."""
    step = Transition(Kind.STEP, "A")
    with opened(explorer_urls, bank.no_lock) as harness:
        workers = [harness.worker(index) for index in range(2)]
        run = FedRun(workers, {}, harness.servers, harness.bounds, lambda *_: 0, lambda world: step)
        run.task("A").state = State.READY
        assert run.prescribed() == step
        run.task("A").state = State.BLOCKED
        with pytest.raises(NotTheSame, match="comes to another place"):
            run.prescribed()
