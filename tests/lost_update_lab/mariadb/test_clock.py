"""MariaDB's clock is virtual: leases in rows, sleeps, time-outs of locks and statements, and times that are told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.gates.mariadb import describe
from lost_update_lab.gates.mariadb.describe import SET_BEFORE
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import IN_THE_COMMAND
from lost_update_lab.search.search import SearchResult
from lost_update_lab.servers.clock import ServerClock
from lost_update_lab.servers.mariadb import clock_words
from lost_update_lab.servers.mariadb import server as server_of_mariadb
from lost_update_lab.servers.mariadb.server import MariaDBServer
from tests.lost_update_lab.mariadb import bank
from tests.lost_update_lab.mariadb.bank import Bank

Explore = Callable[..., tuple[SearchResult, Bank]]
BREAKS = frozenset({Fault.CRASH, Fault.PAUSE, Fault.CLOCK_JUMP})
NOTHING_LEFT: dict[str, Any] = {"exhausted": True, "cause": ""}


@pytest.fixture(autouse=True)
def a_row_for_a_lease(explored_mariadb: MariaDB) -> Iterator[None]:
    with explored_mariadb.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE lease (id INT PRIMARY KEY, deadline DATETIME(6), till BIGINT)")
        cursor.execute("INSERT INTO lease VALUES (1, NULL, 0)")
        cursor.execute("CREATE VIEW free AS SELECT id FROM lease WHERE deadline IS NULL OR deadline < NOW(6)")
        yield
        cursor.execute("DROP VIEW free")
        cursor.execute("DROP TABLE lease")


def leased(free: str, ends: str, poll: float = 1.0, work: float = 0.0) -> Callable[[Bank, int], str]:
    """A lease in a row: who finds it `free` may take it."""

    def deposit(system: Bank, amount: int) -> str:
        with system.sql.cursor() as cursor:
            while not cursor.execute(f"UPDATE lease SET {ends} WHERE id = 1 AND ({free})"):
                time.sleep(poll)
        balance = system.read()
        if work:
            time.sleep(work)
        system.write(balance + amount)
        system.ask("UPDATE lease SET deadline = NULL, till = 0 WHERE id = 1")
        return "ok"

    return deposit


FORMS = {
    "NOW(6)": ("deadline IS NULL OR deadline < NOW(6)", "deadline = NOW(6) + INTERVAL 10 SECOND"),
    "UTC_TIMESTAMP()": (
        "deadline IS NULL OR deadline < UTC_TIMESTAMP()",
        "deadline = UTC_TIMESTAMP() + INTERVAL 10 SECOND",
    ),
    "SYSDATE()": (
        "COALESCE(deadline, '2000-01-01') <= SYSDATE()",
        "deadline = DATE_ADD(SYSDATE(), INTERVAL 10 SECOND)",
    ),
    "UNIX_TIMESTAMP()": ("till < UNIX_TIMESTAMP()", "till = UNIX_TIMESTAMP() + 10"),
    "a view": ("id IN (SELECT id FROM free)", "deadline = NOW(6) + INTERVAL 10 SECOND"),
}


@pytest.mark.deep
@pytest.mark.parametrize("form", FORMS)
def test_a_lease_in_a_row_excludes_until_it_ends(explore: Explore, form: str) -> None:
    found, _ = explore(leased(*FORMS[form]), faults=1, kinds=BREAKS)
    assert (found.cause, found.exhausted) == ("", True)
    assert found.under(None) == found.under(Fault.CRASH) == "unbroken"
    assert found.under(Fault.PAUSE) == found.under(Fault.CLOCK_JUMP) == "lost"
    assert found.virtual_clocks == {"mariadb": "each session's timestamp"}


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(("work", "word"), [(9.8, "unbroken"), (11.2, "lost")])
@pytest.mark.parametrize("form", ["NOW(6)", "UNIX_TIMESTAMP()"])
def test_who_works_longer_than_its_lease_is_found_between_two_polls(
    explore: Explore, form: str, work: float, word: str
) -> None:
    """A clock of whole seconds shows up to a second later that the lease is over."""
    found, _ = explore(leased(*FORMS[form], poll=5, work=work))
    assert (found.cause, found.exhausted, found.worst) == ("", True, word)


@pytest.mark.deep
@pytest.mark.answers_change
@pytest.mark.parametrize("forgotten", ["asked", "over"])
def test_forgetting_the_clock_would_be_noticed(
    explore: Explore, forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = leased(*FORMS["NOW(6)"], poll=5, work=10.2)
    right, _ = explore(lock)
    stand_ins = {"asked": lambda clock, op, who: op, "over": lambda clock: b""}
    monkeypatch.setattr(ServerClock, forgotten, stand_ins[forgotten])
    wrong, _ = explore(lock)
    assert right.worst == "lost"
    assert wrong.cause or wrong.counts != right.counts


@pytest.mark.answers_change
def test_a_session_that_is_told_no_time_would_be_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MariaDBServer, "tell_time", lambda server, connection: None)
    found, _ = explore(leased(*FORMS["NOW(6)"], poll=5, work=10.2))
    assert found.cause or found.worst != "lost"


def test_sleeps_and_limits_are_virtual(explore: Explore) -> None:
    told: set[Any] = set()

    def deposit(system: Bank, amount: int) -> str:
        [(began,)] = system.ask("SELECT NOW(6)")
        system.ask("SET SESSION max_statement_time = 3")
        try:
            system.ask("SELECT SLEEP(40)")
        except pymysql.MySQLError as error:
            told.add(error.args[0])
        slept = system.ask("SELECT SLEEP(1.5)")
        [(now, stamp)] = system.ask("SELECT SYSDATE(6), UNIX_TIMESTAMP()")
        return f"{slept} {(now - began).total_seconds()} {stamp - int(began.timestamp())}"

    began = time.monotonic()
    found, _ = explore(deposit)
    assert (found.cause, found.exhausted, told) == ("", True, {1969})
    assert time.monotonic() - began < 40


@pytest.mark.parametrize(
    "locks",
    [
        "SELECT id FROM account WHERE id = 1 FOR UPDATE WAIT 2",
        "SET SESSION max_statement_time = 2",
    ],
)
def test_who_waits_for_a_row_gives_up_in_virtual_time(explore: Explore, locks: str) -> None:
    def deposit(system: Bank, amount: int) -> str:
        if locks.startswith("SET"):
            system.ask(locks)
            return bank.select_for_update(system, amount)
        with system.transaction():
            system.ask(locks)
            system.write(system.read() + amount)
        return "ok"

    found, system = explore(deposit, faults=1, kinds=frozenset({Fault.PAUSE}))
    assert (found.cause, found.exhausted, found.under(None)) == ("", True, "unbroken")
    assert found.under(Fault.PAUSE) == "stalled"
    assert system.errors == {1969 if locks.startswith("SET") else bank.TIMED_OUT}


@pytest.mark.parametrize(
    "command",
    ["SELECT id FROM account WHERE SLEEP(id) = 0", "SET SESSION wait_timeout = 1", "SET timestamp = 5"],
)
def test_what_only_its_own_clock_can_do_is_named(explore: Explore, command: str) -> None:
    def deposit(system: Bank, amount: int) -> str:
        system.ask(command)
        return bank.no_lock(system, amount)

    found, _ = explore(deposit)
    assert not found.exhausted
    assert "MariaDB's own clock decides" in found.cause


@pytest.mark.parametrize(
    "command",
    [
        "SET STATEMENT innodb_lock_wait_timeout = 1 FOR SELECT balance FROM account WHERE id = 1 FOR UPDATE",
        "/* hold */ set statement max_statement_time=2 FOR SELECT balance FROM account FOR UPDATE",
        "SET STATEMENT sort_buffer_size = 100000 FOR UPDATE account SET balance = balance + 1 WHERE id = 1",
    ],
)
def test_a_setting_for_one_command_is_refused(explore: Explore, command: str) -> None:
    """Its limit ran in real time, and it was taken for a SET, which no other worker sees."""

    def deposit(system: Bank, amount: int) -> str:
        system.ask(command)
        return bank.no_lock(system, amount)

    found, _ = explore(deposit)
    assert (found.exhausted, found.remedy) == (False, SET_BEFORE)
    assert f"hides the command behind its FOR, and how long that waits ({command[:40]}" in found.cause


def test_a_column_called_statement_is_none() -> None:
    assert (
        describe.beyond("UPDATE account SET statement = 'SET STATEMENT a = 1 FOR'", unbuffered=False) is None
    )


@pytest.mark.parametrize(
    ("text", "decides", "digits"),
    [
        ("UPDATE l SET till = NOW(3) + INTERVAL 3 SECOND", True, {3}),
        ("UPDATE l SET seen = CURRENT_TIMESTAMP WHERE id = 1", False, {0}),
        ("INSERT INTO l VALUES (1, UTC_TIMESTAMP(6))", False, {6}),
        ("SELECT UNIX_TIMESTAMP(till), `now`, 'NOW()' FROM l -- NOW()", False, set()),
        ("DELETE FROM l WHERE till < UNIX_TIMESTAMP()", True, {0}),
    ],
)
def test_where_a_command_asks_for_the_clock(text: str, decides: bool, digits: set[int]) -> None:
    assert (clock_words.decides(text), clock_words.digits(text)) == (decides, digits)


def test_a_clock_that_no_session_can_set_is_named(
    explore: Explore, explored_mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SYSDATE() in a function, on a server without --sysdate-is-now."""

    def deposit(system: Bank, amount: int) -> str:
        system.ask("SELECT today()")
        return bank.no_lock(system, amount)

    monkeypatch.setattr(server_of_mariadb, "_SYSDATE", ("DO 0", "SELECT 0", "DO 0"))
    with explored_mariadb.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE FUNCTION today() RETURNS DATETIME RETURN SYSDATE()")
        try:
            found, _ = explore(deposit)
        finally:
            cursor.execute("DROP FUNCTION today")
    assert (found.exhausted, found.remedy) == (False, IN_THE_COMMAND)
