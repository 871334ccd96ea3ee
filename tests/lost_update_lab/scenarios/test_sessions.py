"""Operations that connect by themselves, and close their connection: each run begins with a session like a new one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result

MADE = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"
#: more than the explorer and its workers have at a time; a search of these operations executes more than 60 runs
FEW = 20


def connect(**how: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ["DATABASE_URL"], **how)


def account() -> None:
    with connect() as sql:
        sql.execute("CREATE TABLE account (id int PRIMARY KEY, balance int)")
        sql.execute("INSERT INTO account VALUES (1, 100)")


def _add(sql: psycopg.Connection[Any], query: str) -> None:
    (balance,) = sql.execute(query).fetchone() or (0,)
    sql.execute("UPDATE account SET balance = %s", [balance + 1])


def adds() -> None:
    with connect() as sql:
        _add(sql, "SELECT balance FROM account")


def adds_safely() -> None:
    with connect() as sql:
        _add(sql, "SELECT balance FROM account FOR UPDATE")


def by_a_temporary_table() -> None:
    with connect(autocommit=True) as sql:
        sql.execute("CREATE TEMP TABLE seen (balance int)")
    with connect(autocommit=True) as sql:
        sql.execute("CREATE TEMP TABLE seen (balance int)")
        sql.execute("INSERT INTO seen VALUES (1)")
        sql.execute("UPDATE account SET balance = balance + (SELECT sum(balance) FROM seen)")


def with_a_setting() -> str:
    """Only its own transaction has asked for it."""
    with connect(autocommit=True) as sql:
        (before,) = sql.execute("SHOW application_name").fetchone() or ("",)
        sql.execute("SET application_name = 'mine'")
        sql.execute("UPDATE account SET balance = balance + 1")
    return str(before)


def prepared() -> None:
    with connect(autocommit=True, prepare_threshold=0) as sql:
        sql.execute("PREPARE mine AS UPDATE account SET balance = balance + 1")
        sql.execute("EXECUTE mine")


def leaves_without_a_commit() -> None:
    """The server takes back what it has written, and what it has locked is free."""
    sql = connect()
    sql.execute("UPDATE account SET balance = balance + 1")
    sql.close()
    assert sql.closed
    adds_safely()


@pytest.mark.deep
@pytest.mark.parametrize(("operation", "verdict"), [(adds, "violated"), (adds_safely, "kept")])
def test_a_search_makes_few_sessions(
    trial: Callable[..., Result], scenario_urls: tuple[str, str], operation: Any, verdict: str
) -> None:
    with psycopg.connect(scenario_urls[0], autocommit=True) as sql:
        (before,) = sql.execute(MADE).fetchone() or (0,)
        assert trial([operation, operation], setup=account).verdict == verdict
        (after,) = sql.execute(MADE).fetchone() or (0,)
    assert after - before < FEW


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "operation", [by_a_temporary_table, with_a_setting, prepared, leaves_without_a_commit]
)
@pytest.mark.parametrize("crashes", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_nothing_is_left_of_the_run_before(
    trial: Callable[..., Result], operation: Any, crashes: int
) -> None:
    found = trial([operation, operation], setup=account, crashes=crashes, control=False)
    assert found.kept, found
    assert not found.notes


def under_a_lock_of_its_session() -> None:
    """Its end unlocks."""
    with connect(autocommit=True) as sql:
        sql.execute("SELECT pg_advisory_lock(7)")
        _add(sql, "SELECT balance FROM account")


def under_a_lock_of_its_session_in_a_transaction() -> None:
    with connect() as sql:
        sql.execute("SELECT pg_advisory_lock(7)")
        sql.commit()
        _add(sql, "SELECT balance FROM account")


async def of_a_coroutine() -> None:
    sql = await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True)
    async with sql:
        await sql.execute("SELECT pg_advisory_lock(7)")
        (balance,) = await (await sql.execute("SELECT balance FROM account")).fetchone() or (0,)
        await sql.execute("UPDATE account SET balance = %s", [balance + 1])


def unlocks_too_early() -> None:
    with connect(autocommit=True) as sql:
        sql.execute("SELECT pg_advisory_lock(7)")
        (balance,) = sql.execute("SELECT balance FROM account").fetchone() or (0,)
    with connect(autocommit=True) as sql:
        sql.execute("UPDATE account SET balance = %s", [balance + 1])


@pytest.mark.deep
@pytest.mark.parametrize("crashes", [0, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    ("operation", "verdict"),
    [
        (under_a_lock_of_its_session, "kept"),
        (under_a_lock_of_its_session_in_a_transaction, "kept"),
        (of_a_coroutine, "kept"),
        (unlocks_too_early, "violated"),
    ],
)
def test_the_end_of_a_session_unlocks(
    trial: Callable[..., Result], operation: Any, verdict: str, crashes: int
) -> None:
    found = trial([operation, operation], setup=account, crashes=crashes, control=False)
    assert (found.verdict, found.exhausted) == (verdict, True), found


def one_account(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (balance int)")
    sql.execute("INSERT INTO account VALUES (100)")


def remembers_in_a_table(sql: Any) -> bool:
    sql.execute("CREATE TEMPORARY TABLE IF NOT EXISTS seen (x int)")
    known = sql.execute("SELECT count(*) FROM seen").fetchone()[0]
    sql.execute("INSERT INTO seen VALUES (1)")
    return bool(known)


def remembers_in_a_setting(sql: Any) -> bool:
    known = sql.execute("SELECT current_setting('mine.done', true)").fetchone()[0]
    sql.execute("SET mine.done = '1'")
    return known == "1"


def withdraws_if_new(remembers: Callable[[Any], bool], sql: Any) -> None:
    """Nothing protects it, if each worker is a process that has just begun."""
    if not remembers(sql):
        (balance,) = sql.execute("SELECT balance FROM account").fetchone()
        sql.execute("UPDATE account SET balance = %s", [balance - 10])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("remembers", [remembers_in_a_setting, remembers_in_a_table])
def test_the_session_that_is_handed_in_is_new_in_each_schedule(
    trial: Callable[..., Result], remembers: Callable[[Any], bool]
) -> None:
    """It kept what the schedule before had made known to it: "not repeatable"."""
    result = trial([(withdraws_if_new, remembers)] * 2, setup=one_account, control=False)
    assert result.verdict == "violated", str(result)


HELD = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def timed_account() -> None:
    with connect() as sql:
        sql.execute("CREATE TABLE account (balance int, changed timestamptz)")
        sql.execute("INSERT INTO account VALUES (100, now())")


def adds_by_its_version() -> None:
    for _ in range(3):
        with connect() as sql:
            balance, changed = sql.execute("SELECT balance, changed FROM account").fetchone() or (0, None)
            adds = "UPDATE account SET balance = %s, changed = now() WHERE changed = %s"
            if sql.execute(adds, [balance + 1, changed]).rowcount:
                return


@pytest.mark.deep
def test_what_is_recorded_keeps_no_session(trial: Callable[..., Result]) -> None:
    """Each run is executed, and stops in the middle of a connection. The server had no room after 500 of them."""
    held = list[int]()

    def looks(sql: Any) -> bool:
        held.append(sql.execute(HELD).fetchone()[0])
        return True

    trial([adds_by_its_version] * 3, setup=timed_account, invariant=looks, control=False, budget=12.0)
    assert max(held) < 2 * FEW
