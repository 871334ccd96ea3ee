"""Two commands that lock several rows in opposite orders. Each was one step, so they never met half-way: kept."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.servers.postgres.between_rows import proposed
from lost_update_lab.under_test.operations import STALLED

Trial = Callable[..., Result]
SCHEMA = """
DROP TABLE IF EXISTS account, entry CASCADE;
CREATE TABLE account (id text PRIMARY KEY, balance int NOT NULL);
CREATE TABLE entry (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account text, amount int);
INSERT INTO account VALUES ('a', 100), ('b', 100);
"""
UPSERT = (
    "INSERT INTO account VALUES ('{}', 1), ('{}', 1) "
    "ON CONFLICT (id) DO UPDATE SET balance = account.balance + excluded.balance"
)
COMMANDS = {
    "upserts": UPSERT,
    "inserts": "INSERT INTO account VALUES ('new {}', 1), ('new {}', 1) ON CONFLICT DO NOTHING",
    "inserts-of-a-key": "INSERT INTO account VALUES ('new {0}', 1), ('new {1}', 1)",
    "updates": "UPDATE account SET balance = balance + 1 FROM (VALUES ('{}'), ('{}')) AS v (which) WHERE id = which",
    "merges": "MERGE INTO account USING (VALUES ('{}'), ('{}')) AS v (which) ON id = which "
    "WHEN MATCHED THEN UPDATE SET balance = balance + 1",
}


def accounts() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(SCHEMA)


def sends(text: str) -> Callable[..., None]:
    def operation(first: str, second: str, sql: Any) -> None:
        with sql.transaction():
            for other in (
                "enable_hashjoin",
                "enable_mergejoin",
                "enable_seqscan",
            ):  # so the values come one by one
                sql.execute(f"SET LOCAL {other} = off")
            sql.execute(text.format(first, second))

    return operation


@pytest.mark.parametrize("how", COMMANDS)
def test_opposite_orders(trial: Trial, how: str) -> None:
    operation = sends(COMMANDS[how])
    workers = [worker("Ann", operation, "a", "b"), worker("Bob", operation, "b", "a")]
    result = trial(workers, setup=accounts, control=False)
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)
    assert "others can come before its next row, after number 1" in str(result)


@pytest.mark.parametrize("how", ["upserts", "updates"])
def test_one_order(trial: Trial, how: str) -> None:
    operation = sends(COMMANDS[how])
    workers = [worker("Ann", operation, "a", "b"), worker("Bob", operation, "a", "b")]
    result = trial(workers, setup=accounts, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


@pytest.mark.parametrize(
    ("orders", "noted"),
    [(("", ""), True), (("ORDER BY id",) * 2, False), (("ORDER BY id", "ORDER BY id DESC"), True)],
)
def test_selects_that_lock_several_rows_are_noted(trial: Trial, orders: tuple[str, str], noted: bool) -> None:
    """Nobody comes between these rows. The last ones deadlock in production."""

    def locks(order: str, sql: Any) -> None:
        with sql.transaction():
            sql.execute(f"SELECT id FROM account {order} FOR UPDATE")
            sql.execute("UPDATE account SET balance = balance + 1 WHERE id = 'a'")

    result = trial([worker("Ann", locks, orders[0]), worker("Bob", locks, orders[1])], setup=accounts)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)
    assert any("Give all of them the same ORDER BY" in note for note in result.notes) is noted, str(result)


VALUES, ADDS = (
    "INSERT INTO account VALUES {} ",
    "ON CONFLICT (id) DO UPDATE SET balance = account.balance + excluded.balance",
)
ENDINGS = (ADDS, "ON CONFLICT DO NOTHING", "")


def in_one_command(ending: str, rows: list[str], sql: Any) -> None:
    with sql.transaction():
        sql.execute(VALUES.format(", ".join(f"('{row}', 1)" for row in rows)) + ending)


def row_by_row(ending: str, rows: list[str], sql: Any) -> None:
    with sql.transaction():
        for row in rows:
            sql.execute(VALUES.format(f"('{row}', 1)") + ending)


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("seed", range(20))
def test_one_command_comes_to_what_its_rows_come_to(trial: Trial, seed: int) -> None:
    """One by one, in their order."""
    chance = random.Random(seed)
    given = [
        (chance.choice(ENDINGS), chance.sample(["a", "b", "x", "y"], chance.choice([2, 3]))) for _ in range(2)
    ]
    found = []
    for operation in (in_one_command, row_by_row):
        workers = [worker(who, operation, *what) for who, what in zip(("Ann", "Bob"), given, strict=True)]
        result = trial(workers, setup=accounts, control=False, refusals=(psycopg.errors.UniqueViolation,))
        found.append((result.verdict, "deadlock" in str(result), result.exhausted))
    assert found[0] == found[1], (given, found)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO t (a, b) VALUES (%s, (1 + 2)) ON CONFLICT (a) DO NOTHING", 1),
        ("INSERT INTO t VALUES (%s, '), ('), (2, 3) RETURNING (a)", 2),
        ("INSERT INTO t (a) (VALUES (1), (2))", 0),
        ("INSERT INTO t SELECT 1", 2),
        ("UPDATE t SET (a, b) = (1, 2)", 0),
    ],
)
def test_how_many_rows_an_insert_would_insert(statement: str, rows: int) -> None:
    assert proposed(statement) == rows
