"""On a MariaDB: tables without transactions, numbers of sequences, other databases. It was `kept`, of code that reads
what others have not committed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from lost_update_lab import worker
from lost_update_lab.under_test.mariadb import parameters
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

ENGINES = ["MyISAM", *(pytest.param(each, marks=pytest.mark.deep) for each in ("Aria", "MEMORY"))]


@pytest.fixture(autouse=True)
def nothing_is_left(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.setenv("DATABASE_URL", trial.keywords["database"])  # type: ignore[attr-defined]
    for what in ("TABLE IF EXISTS flag, log", "SEQUENCE IF EXISTS invoice", "DATABASE IF EXISTS elsewhere"):
        shop.ask(f"DROP {what}")


def opened(*more: str) -> Any:
    def setup() -> None:
        shop.open_shop()
        for text in more:
            shop.ask(text)

    return setup


def asks(text: str, database: str | None = None) -> Any:
    def operation(number: int) -> None:
        known = parameters(os.environ["DATABASE_URL"])
        with pymysql.connect(**{**known, "database": database or known["database"]}) as sql:
            sql.cursor().execute(text)

    return operation


def refused(trial: Trial, operation: Any, told: str, *more: str) -> None:
    with pytest.raises(Mistake, match=told):
        trial([worker("Ann", operation, 1), worker("Bob", operation, 2)], setup=opened(*more))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_without_transactions(trial: Trial, engine: str) -> None:
    told = rf"others see what is written to that table before COMMIT.*\(flag, {engine}\)"
    refused(trial, asks("SELECT done FROM flag"), told, f"CREATE TABLE flag (done INT) ENGINE={engine}")


def test_a_trigger_that_writes_to_one(trial: Trial) -> None:
    makes = "CREATE TABLE log (number INT) ENGINE=MyISAM"
    trigger = "CREATE TRIGGER logs AFTER UPDATE ON account FOR EACH ROW INSERT INTO log VALUES (NEW.id)"
    refused(trial, asks("UPDATE account SET balance = 1 WHERE id = 1"), r"\(log, MyISAM\)", makes, trigger)


def test_the_number_of_a_sequence(trial: Trial) -> None:
    makes = "CREATE OR REPLACE SEQUENCE invoice"
    told = "a command reads, or sets, the number of a sequence"
    refused(trial, asks("SELECT next_not_cached_value FROM invoice"), told, makes)
    refused(trial, asks("SELECT SETVAL(invoice, 7)"), told, makes)
    draws = asks("SELECT NEXTVAL(invoice)")
    assert trial([worker("Ann", draws, 1), worker("Bob", draws, 2)], setup=opened(makes)).kept


@pytest.mark.parametrize("limit", ["idle_transaction_timeout = 5", "wait_timeout = 30"])
def test_a_session_that_mariadb_would_end(trial: Trial, limit: str) -> None:
    def operation(number: int) -> None:
        known = parameters(os.environ["DATABASE_URL"])
        with pymysql.connect(**known, init_command=f"SET SESSION {limit}") as sql:
            sql.cursor().execute("UPDATE account SET balance = 1 WHERE id = 1")

    refused(trial, operation, f"MariaDB would end an idle session by its {limit.replace('=', 'of')} s")


def test_another_database(trial: Trial) -> None:
    told = "it uses another database of that server, which the explorer was not given: elsewhere"
    makes = ("CREATE DATABASE IF NOT EXISTS elsewhere", "CREATE OR REPLACE TABLE elsewhere.done (id INT)")
    refused(trial, asks("SELECT id FROM elsewhere.done"), told, *makes)
    refused(trial, asks("SELECT id FROM done", database="elsewhere"), told, *makes)
