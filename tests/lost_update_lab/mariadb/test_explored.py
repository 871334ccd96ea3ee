"""The verdicts of the literature on MariaDB, found by search on the real server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from pymysql.constants import COMMAND

import lost_update_lab
from lost_update_lab import worker
from lost_update_lab.adapters import pymysql as driver
from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.gates.mariadb import step
from lost_update_lab.model.bounds import Fault, Reduction
from lost_update_lab.search.search import SearchResult
from lost_update_lab.servers.mariadb import locks
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import bank
from tests.lost_update_lab.mariadb.bank import Bank

Explore = Callable[..., tuple[SearchResult, Bank]]

#: deposit → the gravest word without a fault, the numbers of the errors that a worker ended with
CASES: dict[str, tuple[Any, str, set[int]]] = {
    "no lock": (bank.no_lock, "lost", set()),
    "select for update": (bank.select_for_update, "unbroken", set()),
    "REPEATABLE READ as it comes": (bank.repeatable_read, "lost", set()),
    "REPEATABLE READ with innodb_snapshot_isolation": (bank.snapshot_isolation, "unbroken", set()),
    "two rows in opposite order": (bank.opposite_order, "stalled", {bank.DEADLOCK}),
    "GET_LOCK": (bank.named_lock, "unbroken", set()),
    "the lock table, REPEATABLE READ: two gap locks": (
        bank.lock_table("REPEATABLE READ"),
        "stalled",
        {bank.DEADLOCK},
    ),
    "the lock table, READ COMMITTED: both insert": (
        bank.lock_table("READ COMMITTED"),
        "stalled",
        {bank.DUPLICATE},
    ),
}


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("name", CASES)
def test_the_literature(name: str, explore: Explore) -> None:
    deposit, word, errors = CASES[name]
    found, system = explore(deposit)
    assert (found.exhausted, found.worst, system.errors) == (True, word, errors), found.cause


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("name", ["select for update", "two rows in opposite order", "GET_LOCK"])
def test_every_order_of_every_step_finds_the_same(name: str, explore: Explore) -> None:
    """Must the reduction leave nothing out: the referee executes all."""
    deposit = CASES[name][0]
    reduced, one = explore(deposit)
    referee, other = explore(deposit, reduction=Reduction.NONE)
    assert referee.exhausted
    assert set(reduced.words) == set(referee.words)
    assert one.errors == other.errors


def test_what_a_transaction_has_met_is_part_of_the_state(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a look before the other's commit is taken for one after it, and one of three outcomes is missed."""
    found, system = explore(bank.behind_its_snapshot)
    assert (found.exhausted, system.outcomes) == (True, {(220, ()), (240, ()), (120, ("A",))})
    monkeypatch.setattr(step, "_meets", lambda *_: None)
    assert explore(bank.behind_its_snapshot)[1].outcomes < system.outcomes


def test_a_time_out_comes_by_virtual_time(explore: Explore) -> None:
    """No real time passes: the holder is paused, and the waiter's 2 s (or the server's 50 s) are virtual."""
    found, system = explore(bank.impatient, faults=1)
    assert found.exhausted
    assert bank.TIMED_OUT in system.errors
    assert found.seconds < 50


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("name", ["select for update", "GET_LOCK"])
def test_a_crashed_holder_lets_go(name: str, explore: Explore) -> None:
    """Of its row, and of its name: both die with its session."""
    found, _ = explore(CASES[name][0], faults=1, kinds=frozenset({Fault.CRASH}))
    assert found.exhausted, found.cause
    assert Fault.CRASH in found.fired
    assert found.worst == "unbroken"


def test_a_command_that_has_not_reached_the_server_does_not_wait_yet(explored_mariadb: MariaDB) -> None:
    """It was held to wait because another session has the name. The interruption at the end of its time then struck
    nothing, and the search hung in a wait of a day."""
    ask = "SELECT GET_LOCK('account 1', 10)"
    holder, waiter, judge = (explored_mariadb.connect(autocommit=True) for _ in range(3))
    with holder, waiter, judge:
        driver.run(holder, ask)

        def waits() -> str:
            return locks.waits_for(lambda text: driver.run(judge, text), driver.number(waiter), ask)

        assert waits() == ""
        driver.send(waiter, COMMAND.COM_QUERY, ask)
        while not waits():
            assert not driver.has_answered(waiter, 1)
        driver.run(judge, f"KILL QUERY {driver.number(waiter)}")
        assert driver.has_answered(waiter, 5000)
        driver.hear_out(waiter)


def test_a_client_past_the_gates_is_reported(explored_mariadb: MariaDB) -> None:
    """It connects, and is gone again before anybody looks."""
    server = MariaDBServer(explored_mariadb.connect, driver)
    try:
        server.watch()
        assert server.bypassed() == ""
        client = [
            "mariadb",
            "--no-defaults",
            f"--socket={explored_mariadb.socket}",
            "--user=lab",
            "-e",
            "SELECT 1",
        ]
        subprocess.run(client, check=True, capture_output=True)
        assert "past the gates" in server.bypassed()
    finally:
        server.close()


def test_a_server_that_explore_was_not_given_is_reported(
    explored_mariadb: MariaDB, scenario_urls: tuple[str, str]
) -> None:
    """explore() knows PostgreSQL and Redis: operations on a MariaDB are not judged, and never kept."""

    def operation(connection: Any = None) -> None:
        with connection or explored_mariadb.connect() as sql, sql.cursor() as cursor:
            cursor.execute("SELECT 1")

    database, redis = scenario_urls
    made_before = explored_mariadb.connect()
    for given in ((), (made_before,)):
        both = [worker("Ann", operation, *given), worker("Bob", operation, *given)]
        with pytest.raises(Mistake, match="the explorer was given no"):
            lost_update_lab.explore(both, database=database, redis=redis, disposable=True)
