"""Two commands that lock several rows in opposite orders. Each was one step, so they never met half-way: kept."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.servers.postgres.between_rows import proposed
from lost_update_lab.under_test.operations import STALLED, VIOLATED

Trial = Callable[..., Result]
SCHEMA = """
DROP TABLE IF EXISTS account, entry, member, event, "the-keys" CASCADE;
CREATE TABLE account (id text PRIMARY KEY, balance int NOT NULL);
INSERT INTO account VALUES ('a', 100), ('b', 100);
CREATE TABLE entry (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account text REFERENCES account ON DELETE CASCADE);
CREATE TABLE member (tenant uuid DEFAULT gen_random_uuid(), code text, UNIQUE (tenant, code));
CREATE TABLE event (id serial PRIMARY KEY, what text);
CREATE TABLE "the-keys" (id text PRIMARY KEY);
CREATE VIEW everybody AS SELECT * FROM account;
CREATE OR REPLACE FUNCTION upserts(first text, second text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO account VALUES (first, 1), (second, 1) ON CONFLICT (id) DO UPDATE SET balance = account.balance + 1 $$;
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
    "merges-of-new-rows": "MERGE INTO account USING (VALUES ('new {}'), ('new {}')) AS v (which) ON id = which "
    "WHEN NOT MATCHED THEN INSERT VALUES (which, 1)",
    "a-transfer-in-one-command": "WITH source AS (UPDATE account SET balance = balance - 1 WHERE id = '{}') "
    "UPDATE account SET balance = balance + 1 WHERE id = '{}'",
    "a-cte-that-is-read": f"WITH done AS ({UPSERT} RETURNING id) SELECT id FROM done",
    "inserts-by-a-cte": "WITH v (which) AS (VALUES ('new {}'), ('new {}')) INSERT INTO account SELECT which, 1 FROM v",
    "a-comment": "/* by=pay */ INSERT INTO account VALUES ('new {}', 1), ('new {}', 1) ON CONFLICT DO NOTHING",
    "a-uuid-in-a-key": "INSERT INTO member VALUES ('00000000-0000-0000-0000-000000000001', '{}'), "
    "('00000000-0000-0000-0000-000000000001', '{}')",
    "a-view": "INSERT INTO everybody VALUES ('new {}', 1), ('new {}', 1)",
    "a-name-in-quotes": "INSERT INTO \"the-keys\" VALUES ('{}'), ('{}')",
    "a-serial-that-is-given": "INSERT INTO event (id, what) VALUES (ascii('{}'), ''), (ascii('{}'), '')",
}
#: where one of two commands does not stop, the other one does
UNLIKE = {
    "a-function": ("SELECT upserts('a', 'b')", UPSERT.format("b", "a")),
    "a-function-second": (UPSERT.format("b", "a"), "SELECT upserts('a', 'b')"),
    "foreign-keys": ("INSERT INTO entry (account) VALUES ('b'), ('a')", "DELETE FROM account"),
    "foreign-keys-second": ("DELETE FROM account", "INSERT INTO entry (account) VALUES ('b'), ('a')"),
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


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("how", COMMANDS)
def test_opposite_orders(trial: Trial, how: str) -> None:
    operation = sends(COMMANDS[how])
    workers = [worker("Ann", operation, "a", "b"), worker("Bob", operation, "b", "a")]
    result = trial(workers, setup=accounts, control=False, refusals=(psycopg.errors.UniqueViolation,))
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)
    assert "others can come before its next row, after number" in str(result)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("how", UNLIKE)
def test_two_that_are_unlike(trial: Trial, how: str) -> None:
    workers = [
        worker(who, sends(text), "", "") for who, text in zip(("Ann", "Bob"), UNLIKE[how], strict=True)
    ]
    refusals = (psycopg.errors.ForeignKeyViolation,)
    result = trial(workers, setup=accounts, control=False, refusals=refusals)
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("other_reads", ["", "pg_class", "entry"])
def test_a_row_that_goes_with_another_table_s(
    trial: Trial, scenario_urls: tuple[str, str], other_reads: str
) -> None:
    """DELETE 1, and three rows are locked. A session that reads the catalogue, as autovacuum does, or a table, led to
    another plan of the UPDATE, which found the rows in the order of their places: kept."""

    def more() -> None:
        accounts()
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute("INSERT INTO entry (account) VALUES ('a'), ('a')")
        if other_reads:
            other.execute(f"SELECT FROM {other_reads}")

    one_by_one = sends("UPDATE entry SET account = 'b' FROM (VALUES (2), (1)) AS v (which) WHERE id = which")
    workers = [
        worker("Ann", sends("DELETE FROM account WHERE id = 'a'"), "", ""),
        worker("Bob", one_by_one, "", ""),
    ]
    with closing(psycopg.connect(scenario_urls[0])) as other:  # it is ended: the search cleans up
        result = trial(workers, setup=more, control=False)
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)


def test_who_does_not_wait_for_locks_comes_between(trial: Trial) -> None:
    """Of two accounts that are to be closed one is taken meanwhile: row by row that was violated, and this was kept."""

    def closes(sql: Any) -> None:
        sql.execute("UPDATE account SET balance = 0 WHERE balance = 100")

    def takes(sql: Any) -> None:
        with sql.transaction():
            query = "SELECT id FROM account WHERE balance = 100 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
            for found in sql.execute(query).fetchall():
                sql.execute("UPDATE account SET balance = 7 WHERE id = %s", found)

    def b_is_not_taken() -> bool:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            return connection.execute("SELECT balance FROM account WHERE id = 'b'").fetchone() != (7,)

    law = (b_is_not_taken, "b is taken, and a is not")
    result = trial([closes, takes], setup=accounts, invariant=law, control=False)
    assert result.verdict == VIOLATED, str(result)


def test_two_threads_of_one_worker(trial: Trial) -> None:
    def one(first: str, second: str) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(UPSERT.format(first, second))

    def both() -> None:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(one, "a", "b"), pool.submit(one, "b", "a")]:
                done.result()

    law = (lambda result: True, "never")
    result = trial([both], setup=accounts, invariant=law, control=False, crashes=1)
    assert "deadlock" in str(result), str(result)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("how", ["upserts", "updates"])
def test_one_order(trial: Trial, how: str) -> None:
    operation = sends(COMMANDS[how])
    workers = [worker("Ann", operation, "a", "b"), worker("Bob", operation, "a", "b")]
    result = trial(workers, setup=accounts, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


@pytest.mark.deep_after(2)
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
