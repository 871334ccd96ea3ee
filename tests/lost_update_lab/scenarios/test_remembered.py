"""What a session, or a worker, still knows of a transaction that is over is a part of the state.

A looks at the balance, and keeps it: in a temporary table, in a setting, in what an error said. B deposits. Then A
takes the row's lock, if it is free, and writes by what it has kept. The states before and after B's deposit differ,
although both hold the same rows and A stands before the same command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]
SETUP = """
DROP TABLE IF EXISTS account;
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO account VALUES (1, 100);
CREATE OR REPLACE FUNCTION remember() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('app.balance', (SELECT balance::text FROM account), false);
END $$;
CREATE OR REPLACE FUNCTION withdraw(expected int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE found int; BEGIN
    SELECT balance INTO found FROM account;
    IF found <> expected THEN RAISE EXCEPTION 'the balance is %', found; END IF;
    UPDATE account SET balance = found + 10;
END $$;
"""


def connected() -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ["DATABASE_URL"])


def locked(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1 FROM account FOR UPDATE NOWAIT")
    except psycopg.errors.LockNotAvailable:
        connection.rollback()
        return False
    return True


def in_a_temporary_table() -> bool:
    with connected() as sql:
        sql.execute("CREATE TEMP TABLE staged AS SELECT balance FROM account")
        sql.commit()
        if found := locked(sql):
            sql.execute("UPDATE account SET balance = staged.balance + 10 FROM staged")
    return found


def in_rows_of_one() -> bool:
    with connected() as sql:
        sql.execute("CREATE TEMP TABLE staged (balance int)")
        sql.commit()
        sql.execute("INSERT INTO staged SELECT balance FROM account")
        sql.commit()
        if found := locked(sql):
            sql.execute("UPDATE account SET balance = staged.balance + 10 FROM staged")
    return found


def in_a_setting_of_a_function() -> bool:
    with connected() as sql:
        sql.execute("SELECT remember()")
        sql.commit()
        if found := locked(sql):
            sql.execute("UPDATE account SET balance = current_setting('app.balance')::int + 10")
    return found


def in_what_an_error_said() -> bool:
    with connected() as sql:
        with pytest.raises(psycopg.errors.RaiseException) as raised:
            sql.execute("SELECT withdraw(0)")
        sql.rollback()
        (balance,) = re.findall(r"\d+", str(raised.value.diag.message_primary))
        if found := locked(sql):
            sql.execute("UPDATE account SET balance = %s", [int(balance) + 10])
    return found


def deposits() -> None:
    with connected() as sql:
        sql.execute("UPDATE account SET balance = balance + 20")


def nothing_is_lost(withdrew: Any, _: Any) -> bool:
    with connected() as sql:
        row = sql.execute("SELECT balance FROM account").fetchone()
        return row == (120 + 10 * bool(withdrew),)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "keeps", [in_a_temporary_table, in_rows_of_one, in_a_setting_of_a_function, in_what_an_error_said]
)
def test_what_was_kept_may_be_stale(trial: Trial, keeps: Callable[[], bool]) -> None:
    """Each was kept, if A was the first worker: its two states were one."""
    workers = [worker("A", keeps), worker("B", deposits)]
    result = trial(workers, setup=lambda sql: sql.execute(SETUP), invariant=nothing_is_lost, control=False)
    assert result.verdict == VIOLATED


def charges_by_a_cursor(name: str) -> None:
    with connected() as sql:
        with sql.cursor(name) if name else sql.cursor() as cursor:
            cursor.execute("SELECT balance FROM account")
            (balance,) = cursor.fetchone()
        sql.execute("UPDATE account SET balance = %s", [balance - 10])


def deposits_and_charges_back() -> None:
    for amount in (20, -20):
        with connected() as sql:
            sql.execute("UPDATE account SET balance = balance + %s", [amount])


@pytest.mark.parametrize("name", ["", "c"])
def test_a_cursor_of_the_servers_keeps_the_rows_that_it_looked_at(trial: Trial, name: str) -> None:
    """Its SELECT is told nothing, and what it is told later does not follow from what is committed then."""
    workers = [worker("A", charges_by_a_cursor, name), worker("B", deposits_and_charges_back)]
    given = {"setup": lambda sql: sql.execute(SETUP), "control": False}

    def at_most_90() -> bool:
        with connected() as sql:
            return bool(sql.execute("SELECT balance <= 90 FROM account").fetchone() == (True,))

    result = trial(workers, invariant=at_most_90, **given)
    assert (result.verdict, result.exhausted) == (VIOLATED, True)


def begins_and_locks_in_one_command() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
        sql.execute("BEGIN; SELECT 1 FROM account FOR UPDATE")
        row = sql.execute("SELECT balance FROM account").fetchone()
        assert row
        sql.execute(f"UPDATE account SET balance = {row[0] + 10}".encode())
        sql.execute("COMMIT")


def test_a_transaction_that_begins_in_the_same_command_is_the_users_own(trial: Trial) -> None:
    """The explorer ended it after that command, as a transaction by itself, and accused a right lock."""
    workers = [begins_and_locks_in_one_command] * 2
    result = trial(workers, setup=lambda sql: sql.execute(SETUP), control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True)
