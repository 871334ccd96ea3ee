"""PostgreSQL's clock is virtual: leases in rows, time-outs of locks and statements, sleeps, and times that are told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.errors import IN_THE_COMMAND
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search.poll_calibration import calibrate_polls
from lost_update_lab.search.search import Search
from lost_update_lab.servers.clock import ServerClock
from lost_update_lab.servers.postgres import clock_words, limits
from tests.lost_update_lab import bank as bank_of
from tests.lost_update_lab.bank import Bank, GaveUp, add, locked_by

Explore = Callable[..., SearchResult]
LEASES = "SELECT id, balance, version, deadline FROM account ORDER BY id"
LEASE = 10


@pytest.fixture(autouse=True)
def a_column_for_a_lease(explorer_urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    schema = bank_of.SCHEMA.replace("version int NOT NULL", "version int NOT NULL, deadline timestamptz")
    schema = schema.replace("VALUES (1", "(id, balance, version) VALUES (1")
    monkeypatch.setattr(Bank, "schema", schema)
    monkeypatch.setattr(Bank, "opening", f"{bank_of.RESET}, deadline = NULL")


def taking(condition: str, ends: str = "now()", poll: float = 1.0) -> Callable[[Bank], Iterator[None]]:
    """A lease in a row: who finds `condition` may take it."""

    @contextmanager
    def lease_in_a_row(bank: Bank) -> Iterator[None]:
        take = f"UPDATE account SET deadline = {ends} + interval '{LEASE} s' WHERE id = 2 AND ({condition})"
        while not bank.sql.execute(take).rowcount:
            time.sleep(poll)
        yield
        bank.sql.execute("UPDATE account SET deadline = NULL WHERE id = 2")

    return lease_in_a_row


FORMS = {
    "now()": "deadline IS NULL OR deadline < now()",
    "clock_timestamp()": "deadline IS NULL OR clock_timestamp() > deadline",
    "CURRENT_TIMESTAMP": "coalesce(deadline, 'epoch') <= CURRENT_TIMESTAMP",
}


BREAKS = frozenset({Fault.CRASH, Fault.PAUSE, Fault.CLOCK_JUMP})


@pytest.mark.deep
@pytest.mark.parametrize("form", FORMS)
def test_a_lease_in_a_row_excludes_until_it_ends(explore: Explore, form: str) -> None:
    result = explore(locked_by(taking(FORMS[form])), contents=LEASES, faults=1, kinds=BREAKS)
    assert (result.cause, result.exhausted) == ("", True)
    assert result.under(None) == result.under(Fault.CRASH) == UNBROKEN
    assert result.under(Fault.PAUSE) == result.under(Fault.CLOCK_JUMP) == "lost"
    assert result.virtual_clocks == {"postgres": "shadowed functions"}


@pytest.mark.deep
def test_what_is_left_out_of_a_search_changes_no_verdict(explore: Explore) -> None:
    """Answers that are known, and code that need not run again: the clock is a part of what they depend on."""
    found = [
        explore(
            locked_by(taking(FORMS["now()"], poll=5)),
            contents=LEASES,
            faults=1,
            kinds={Fault.PAUSE},
            **bounds,
        )
        for bounds in ({}, {"in_memory": False}, {"recorded": False, "in_memory": False})
    ]
    assert (
        len({(each.schedules, each.states, tuple(sorted(each.counts.items(), key=str))) for each in found})
        == 1
    )
    assert [each.in_memory > 0 for each in found] == [True, False, False]


@pytest.mark.deep
@pytest.mark.answers_change
@pytest.mark.parametrize("forgotten", [(ServerClock, "asked"), (ServerClock, "over")])
def test_forgetting_the_clock_would_be_noticed(
    explore: Explore, forgotten: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above, and of the next one."""
    stand_ins = {"asked": lambda clock, op, who: op, "over": lambda clock: b""}
    lock = locked_by(taking(FORMS["now()"], poll=5), 10.2)
    right = explore(lock, contents=LEASES)
    monkeypatch.setattr(*forgotten, stand_ins[forgotten[1]])
    wrong = explore(lock, contents=LEASES)
    assert right.worst == "lost"
    assert wrong.cause or wrong.counts != right.counts


@pytest.mark.deep
@pytest.mark.parametrize(("work", "word"), [(9.8, UNBROKEN), (10.2, "lost")])
def test_who_works_longer_than_its_lease_is_found_between_two_polls(
    explore: Explore, work: float, word: str
) -> None:
    result = explore(locked_by(taking(FORMS["now()"], poll=5), work), contents=LEASES)
    assert (result.cause, result.exhausted, result.worst) == ("", True, word)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("compares", "word"), [("<", UNBROKEN), ("<=", "lost")])
def test_at_the_very_end_of_a_lease(explore: Explore, compares: str, word: str) -> None:
    """Both wake at the same time, and nobody is a moment late."""
    lock = taking(f"deadline IS NULL OR deadline {compares} now()", poll=LEASE)
    result = explore(locked_by(lock, work=LEASE), contents=LEASES, slack=0)
    assert (result.cause, result.exhausted, result.worst) == ("", True, word)


WORDS = ("current_timestamp", "localtimestamp", "current_date")


def looks(bank: Bank, amount: int) -> str:
    """What PostgreSQL says of the time before and after two seconds of sleep in a transaction."""
    with bank.sql.transaction():
        began = bank.sql.execute("SELECT now()").fetchone()[0]
        bank.sql.execute("SELECT pg_sleep(%s)", [1.5])
        bank.sql.execute("SELECT pg_sleep(0.5)")
        query = f"SELECT now(), statement_timestamp(), clock_timestamp(), {', '.join(WORDS)}"
        cursor = bank.sql.execute(query)
        named = [column.name for column in cursor.description]
        *times, local, day = cursor.fetchone()
    assert named == ["now", "statement_timestamp", "clock_timestamp", *WORDS]
    assert (local.tzinfo, day) == (None, began.date())
    passed = [(at - began).total_seconds() for at in times]
    return f"{began.timestamp() - Epoch.shows:g}: {passed}"


def test_what_the_clock_shows(harness: Callable[..., Harness]) -> None:
    """now() is when the transaction began, clock_timestamp() goes on, and pg_sleep() costs no real time."""
    began = time.monotonic()
    explored = harness(looks, workers=1)
    calibrate_polls(explored)
    run = explored.run(lambda *_: 0, {})
    assert run.endings[0].result == "0: [0.0, 2.0, 2.0, 0.0]", run.endings
    assert time.monotonic() - began < 60


def waits(setting: str, work: float) -> Callable[[Bank, int], str]:
    """Locks the row, and works; a worker that has waited for too long gives up."""

    def deposit(bank: Bank, amount: int) -> str:
        try:
            with bank.sql.transaction():
                bank.sql.execute(setting)
                bank.sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE")
                return add(bank, amount, work)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
            raise (GaveUp if setting.split()[2].replace("_", " ") in str(error) else error) from error

    return deposit


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("setting", ["SET LOCAL lock_timeout = '2s'", "SET LOCAL statement_timeout = 2000"])
@pytest.mark.parametrize(("work", "gives_up"), [(1.8, False), (2.2, True)])
def test_who_waits_for_a_row_gives_up_in_virtual_time(
    explore: Explore, setting: str, work: float, gives_up: bool
) -> None:
    result = explore(waits(setting, work))
    assert (result.cause, result.exhausted) == ("", True)
    assert result.worst == ("stalled" if gives_up else UNBROKEN)


def slow(setting: str) -> Callable[[Bank, int], str]:
    """The other one's work takes no virtual time, and more than 1 ms of real time."""

    def deposit(bank: Bank, amount: int) -> str:
        bank.sql.execute(setting)
        with bank.sql.transaction():
            balance = bank.sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE").fetchone()[0]
            bank.sql.execute("SELECT count(*) FROM generate_series(1, 100000)")
            bank.write(balance + amount)
        return "ok"

    return deposit


@pytest.mark.deep
@pytest.mark.parametrize(
    "setting", ["SET lock_timeout = '1ms'", "SELECT set_config('lock_timeout', '1ms', false)"]
)
def test_real_time_ends_no_wait(explore: Explore, setting: str) -> None:
    result = explore(slow(setting), slack=0)
    assert (result.cause, result.exhausted, result.worst) == ("", True, UNBROKEN)
    assert len(result.finals) == 1, "both deposits are there, whatever the order"


@pytest.mark.deep
@pytest.mark.answers_change
def test_a_real_time_out_would_be_noticed(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "lift", lambda connection, op: limits.NO_LIMITS)
    found = explore(slow("SET lock_timeout = '1ms'"), slack=0)
    assert len(found.finals) > 1, "a deposit that gave up is missing"


@pytest.mark.deep
def test_a_pause_keeps_others_out_for_longer_than_they_wait(explore: Explore) -> None:
    result = explore(waits("SET LOCAL lock_timeout = '2s'", 0), faults=1, kinds={Fault.PAUSE})
    assert (result.cause, result.exhausted, result.under(None)) == ("", True, UNBROKEN)
    assert result.under(Fault.PAUSE) == "stalled"


@pytest.mark.deep
def test_a_sleep_that_takes_too_long_is_ended(explore: Explore) -> None:
    told: set[str] = set()

    def sleeps(bank: Bank, amount: int) -> str:
        bank.sql.execute("SET statement_timeout = '3s'")
        try:
            bank.sql.execute("SELECT pg_sleep(4)")
        except psycopg.errors.QueryCanceled as error:
            told.add(str(error).splitlines()[0])
        return bank_of.select_for_update(bank, amount)

    assert explore(sleeps).worst == UNBROKEN
    assert told == {"canceling statement due to statement timeout"}


@pytest.mark.parametrize(
    "command",
    ["SELECT pg_sleep_for('5 s')", "SELECT 1 WHERE pg_sleep(1) IS NULL", "SET transaction_timeout = '1s'"],
)
def test_what_only_its_own_clock_can_do_is_named(explore: Explore, command: str) -> None:
    def deposit(bank: Bank, amount: int) -> str:
        bank.sql.execute(command)
        return add(bank, amount)

    result = explore(deposit)
    assert not result.exhausted
    assert "PostgreSQL's own clock decides" in result.cause


@pytest.mark.parametrize(
    ("made", "command"),
    [
        ("FUNCTION is_free() RETURNS bool LANGUAGE sql RETURN now() > 'epoch'", "SELECT is_free()"),
        (
            "FUNCTION is_free() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN now() > 'epoch'; END $$",
            "SELECT is_free()",
        ),
        ("VIEW free AS SELECT id FROM account WHERE deadline < now()", "SELECT * FROM free"),
    ],
)
def test_a_clock_that_no_gate_sees_is_named(harness: Callable[..., Harness], made: str, command: str) -> None:
    def deposit(bank: Bank, amount: int) -> str:
        bank.sql.execute(command)
        return add(bank, amount)

    opened = harness(deposit)
    bank = opened.system
    assert isinstance(bank, Bank)
    bank.admin.execute(f"CREATE {made}")
    try:
        result = Search(opened).explore()
    finally:
        bank.admin.execute("DROP VIEW IF EXISTS free; DROP FUNCTION IF EXISTS is_free()")
    assert (result.exhausted, result.remedy) == (False, IN_THE_COMMAND)


@pytest.mark.parametrize(
    ("text", "counts", "asked"),
    [
        ("UPDATE l SET owner = 'now()' WHERE till < now()", True, "explorer.now()"),
        ("UPDATE l SET till = now() + interval '3 s'", True, "explorer.now()"),
        ("UPDATE l SET seen = now() WHERE id = 1", False, "explorer.now()"),
        ("INSERT INTO e VALUES (1, clock_timestamp())", False, "explorer.clock_timestamp()"),
        ("SELECT localtimestamp(0)", True, 'explorer."localtimestamp"()::timestamp(0)'),
        ('SELECT "now"(), own.now(), $$now()$$ -- now()', False, ""),
    ],
)
def test_where_a_command_asks_for_the_clock(text: str, counts: bool, asked: str) -> None:
    assert clock_words.decides(text) is counts
    found = clock_words.virtual(text)
    assert asked in found
    assert asked or found == text
