"""executemany(): its commands are a step each, in a transaction or as one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from lost_update_lab import Result
from tests.lost_update_lab.scenarios.test_sqlalchemy import Base, Show

Trial = Callable[..., Result]
SCHEMA = "CREATE TABLE account (id int PRIMARY KEY, balance int); INSERT INTO account VALUES (1, 50), (2, 50), (3, 0)"
ADD = "UPDATE account SET balance = balance + %s WHERE id = %s"


def accounts() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(SCHEMA)


def move(first: int, second: int) -> int:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql, sql.cursor() as cursor:
        cursor.executemany(ADD, [(-1, first), (1, second)])
        return cursor.rowcount


async def move_async(first: int, second: int) -> int:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as sql:
        cursor = sql.cursor()
        await cursor.executemany(ADD, [(-1, first), (1, second)])
        return cursor.rowcount


@pytest.mark.deep
@pytest.mark.parametrize("operation", [move, move_async])
def test_other_workers_come_between_its_commands(trial: Trial, operation: Any) -> None:
    found = trial([(operation, 1, 2), (operation, 2, 1)], setup=accounts)
    assert found.verdict == "stalled"
    assert "aborted by the database: deadlock" in found.sentence
    kept = trial([(operation, 1, 2), (operation, 1, 2)], setup=accounts, crashes=1)
    assert (kept.verdict, kept.exhausted) == ("kept", True), str(kept)


def total(sql: Any) -> int:
    return int(sql.execute("SELECT sum(balance) FROM account").fetchone()[0])


@pytest.mark.deep
def test_outside_of_a_transaction_it_is_one(trial: Trial) -> None:
    """A crash leaves all of it, or nothing, and nobody sees a part."""

    def moves(sql: Any) -> int:
        with sql.cursor() as cursor:
            cursor.executemany(ADD, [(-1, 1), (1, 2)])
            return int(cursor.rowcount)

    found = trial([moves, total], setup=accounts, crashes=1, lost_replies=1, faults=1)
    assert (found.verdict, found.exhausted) == ("kept", True), str(found)

    def moves_apart(sql: Any) -> None:
        sql.execute(ADD, (-1, 1))
        sql.execute(ADD, (1, 2))

    assert trial([moves_apart, total], setup=accounts).verdict == "violated"


def test_an_error_undoes_all_of_it(trial: Trial) -> None:
    def inserts(sql: Any) -> str:
        try:
            with sql.cursor() as cursor:
                cursor.executemany("INSERT INTO account VALUES (%s, 0)", [(4,), (1,)])
        except psycopg.errors.UniqueViolation:
            return "known"
        return "new"

    def four(sql: Any) -> bool:
        return bool(sql.execute("SELECT 1 FROM account WHERE id = 4").fetchall())

    with_four = (lambda inserted, seen: inserted == "known" and not seen, "a part of it was seen")
    assert trial([inserts, four], setup=accounts, invariant=with_four, control=False).kept


@pytest.mark.deep
def test_what_it_returns(trial: Trial) -> None:
    """As without the explorer: the results one by one."""

    def returns(sql: Any) -> list[Any]:
        with sql.cursor() as cursor:
            cursor.executemany(ADD + " RETURNING id, balance", [(1, 1), (1, 2)], returning=True)
            found = [cursor.fetchall()]
            while cursor.nextset():
                found.append(cursor.fetchall())
            return found

    with psycopg.connect(trial.keywords["database"], autocommit=True) as sql:  # type: ignore[attr-defined]
        sql.execute("CREATE TEMP TABLE account AS SELECT 1 AS id, 50 AS balance UNION SELECT 2, 50")
        plainly = returns(sql)
    seen: list[Any] = []
    noted = (lambda one, other: seen.append(one) or True, "")
    trial([returns, (add_to_three,)], setup=accounts, invariant=noted)
    assert plainly == [[(1, 51)], [(2, 51)]]
    returned = [
        each for each in seen if isinstance(each, list)
    ]  # it is also asked what it would say of an error
    assert all(each == plainly for each in returned)
    assert returned


def add_to_three(sql: Any) -> None:
    sql.execute(ADD, (1, 3))


def two_shows() -> None:
    made = create_engine(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))
    Base.metadata.create_all(made)
    with Session(made) as session:
        session.add_all([Show(id=1, sold=0), Show(id=2, sold=0)])
        session.commit()
    made.dispose()


def sell_both(locks: bool) -> None:
    """The flush of two rows is an executemany()."""
    made = create_engine(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))
    with Session(made) as session, session.begin():
        for number in (1, 2):
            session.get_one(Show, number, with_for_update=locks).sold += 1
    made.dispose()


@pytest.mark.deep
@pytest.mark.parametrize(("locks", "verdict"), [(False, "violated"), (True, "kept")])
def test_a_flush_of_two_rows(trial: Trial, locks: bool, verdict: str) -> None:
    found = trial([(sell_both, locks), (sell_both, locks)], setup=two_shows)
    assert found.verdict == verdict, str(found)
