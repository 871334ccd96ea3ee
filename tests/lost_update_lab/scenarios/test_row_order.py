"""The rows of a table have the same places on disk at the beginning of every schedule."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import STALLED
from lost_update_lab.under_test.scenario import Mistake

Trial = Callable[..., Result]
ACCOUNTS = """
DROP TABLE IF EXISTS account CASCADE;
CREATE TABLE account (id text PRIMARY KEY, balance int NOT NULL);
INSERT INTO account SELECT lpad(n::text, 3, '0'), 100 FROM generate_series(1, 25) AS n;
"""


def accounts() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(ACCOUNTS)


def interest(sql: Any) -> None:
    """One command that locks the accounts in the order of their places, so 001 before 025."""
    sql.execute("UPDATE account SET balance = balance + balance / 10")


def transfer(sql: Any) -> None:
    with sql.transaction():
        sql.execute("UPDATE account SET balance = balance - 10 WHERE id = '025'")
        sql.execute("UPDATE account SET balance = balance + 10 WHERE id = '001'")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("_", [*range(2), *(pytest.param(n, marks=pytest.mark.deep) for n in range(2, 20))])
def test_a_command_locks_many_rows_in_the_same_order_in_each_schedule(trial: Trial, _: int) -> None:
    """Of 20 searches, 7 found the deadlock, 5 found nothing, and 8 found no schedule that could be repeated."""
    result = trial([worker("Ann", interest), worker("Bob", transfer)], setup=accounts)
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)
    assert result.schedule
    assert result.schedule.confirmed == 10, str(result)


AUDIT = """
DROP TABLE IF EXISTS account, audit CASCADE;
CREATE TABLE account (t int PRIMARY KEY, balance int);
INSERT INTO account VALUES (1, 0), (2, 0);
CREATE TABLE audit (what text);
CREATE OR REPLACE FUNCTION audits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit VALUES (tg_op); RETURN NULL; END $$;
CREATE TRIGGER audits AFTER INSERT OR UPDATE OR DELETE ON account FOR EACH ROW EXECUTE FUNCTION audits();
"""


def with_audit(more: str = "") -> Callable[[], None]:
    def setup() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(AUDIT + more)

    return setup


def books(number: int, sql: Any) -> None:
    sql.execute("UPDATE account SET balance = 1 WHERE t = %s", [number])


def test_a_trigger_that_restoring_would_fire_is_refused(trial: Trial) -> None:
    """It audited what the explorer restores: violated, of right code."""
    always = "ALTER TABLE account ENABLE ALWAYS TRIGGER audits;"
    with pytest.raises(Mistake, match="the trigger audits, which is ENABLE ALWAYS"):
        trial([worker("Ann", books, 1), worker("Bob", books, 2)], setup=with_audit(always))


def test_a_column_may_be_called_anything(trial: Trial) -> None:
    """`t` hid the name that a query of the explorer's gives the table: the search ended in an error."""
    result = trial([worker("Ann", books, 1), worker("Bob", books, 2)], setup=with_audit(), control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)
