"""What protects an operation is taken away, one at a time: what is missed, and what is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios import mutator, protection
from lost_update_lab.scenarios.mutations import CONSTRAINT
from lost_update_lab.scenarios.mutator import ATOMIC, IN_PLACE, LATER, LEVEL, LOCK, ORDER
from lost_update_lab.scenarios.result import SURVIVES

SCHEMA = """
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO account VALUES (1, 50), (2, 50);
CREATE TABLE request (key text, UNIQUE (key));
"""


def accounts() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(SCHEMA)


def transfer(key: str, one: int, two: int, sql: Any) -> bool:
    with sql.transaction():
        query = "SELECT id, balance FROM account WHERE id IN (%s, %s) ORDER BY id FOR UPDATE"
        balances = dict(sql.execute(query, [one, two]).fetchall())
        if balances[one] < 30:
            return False
        sql.execute("INSERT INTO request VALUES (%s)", [key])
        sql.execute("UPDATE account SET balance = balance - %s WHERE id = %s", [30, one])
        sql.execute("UPDATE account SET balance = balance + %s WHERE id = %s", [30, two])
    return True


@pytest.mark.deep
def test_each_is_taken_away_by_itself(trial: Callable[..., Result]) -> None:
    """Under the lock an in-place change is not needed; keys differ, so nothing needs the constraint."""
    result = trial([(transfer, "a", 1, 2), (transfer, "b", 1, 2)], setup=accounts, mutate=True)
    words: dict[str, set[str]] = {}
    for each in result.mutations:
        words.setdefault(each.mutation.kind, set()).add(each.word)
    assert words == {
        LOCK: {"violated"},
        LATER: {"violated"},
        ATOMIC: {"violated"},
        ORDER: {SURVIVES},
        IN_PLACE: {SURVIVES},
        CONSTRAINT: {SURVIVES},
    }
    assert f"{len(result.mutations)} tried, 4 survive: nothing misses what they remove" in str(result)
    assert "test_mutations.py:" in str(result.mutations[0].mutation)


def once(key: str, sql: Any) -> bool:
    done = sql.execute("INSERT INTO request VALUES (%s) ON CONFLICT DO NOTHING", [key]).rowcount
    return bool(done)


def test_a_constraint_that_is_needed_and_is_there_again_afterwards(trial: Callable[..., Result]) -> None:
    for _ in range(2):
        result = trial([(once, "a"), (once, "a")], setup=accounts, mutate=True)
    assert [(each.mutation.what, each.word != SURVIVES) for each in result.mutations] == [
        ("request: request_key_key", True)
    ]


BOOKED = """
CREATE TABLE seat (number int PRIMARY KEY);
CREATE TABLE guest (name text, seat int REFERENCES seat);
"""


def seats() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(BOOKED)


def book(name: str, sql: Any) -> bool:
    try:
        with sql.transaction():
            sql.execute("INSERT INTO seat VALUES (7)")
            sql.execute("INSERT INTO guest VALUES (%s, 7)", [name])
    except psycopg.errors.UniqueViolation:
        return False
    return True


def test_a_primary_key_that_is_needed_and_is_there_again_afterwards(trial: Callable[..., Result]) -> None:
    """With the foreign key that refers to it."""
    for _ in range(2):
        result = trial([(book, "Ann"), (book, "Bob")], setup=seats, mutate=True)
        found = {each.mutation.what: each.word for each in result.mutations if not each.mutation.line}
        assert found == {"seat: seat_pkey": "violated"}


def set_if_free(redis: Any, how: str) -> bool:
    if how == "SETNX":
        taken = redis.execute_command("SETNX", "lock", 1)
    elif how == "in a pipeline":
        taken = redis.pipeline(transaction=False).set("lock", 1, nx=True).execute()[0]
    else:
        taken = redis.set("lock", 1, nx=True)
    if taken:
        redis.incr("entered")
    return bool(taken)


@pytest.mark.parametrize("how", ["SETNX", "in a pipeline", "SET NX"])
def test_a_key_that_is_set_if_it_is_free(trial: Callable[..., Result], how: str) -> None:
    workers = [worker(name, set_if_free, how=how) for name in ("Ann", "Bob")]
    result = trial(workers, mutate=True)
    assert [(each.mutation.kind, each.word) for each in result.mutations] == [(LOCK, "violated")]


def seat(sql: Any) -> bool:
    sql.execute("UPDATE account SET balance = balance - 1 WHERE id = 1")
    return True


def test_a_change_in_place_that_is_needed(trial: Callable[..., Result]) -> None:
    result = trial([(seat,), (seat,)], setup=accounts, mutate=True)
    assert [(each.mutation.kind, each.word) for each in result.mutations] == [(IN_PLACE, "violated")]


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("SELECT a FROM t ORDER BY a FOR UPDATE", "SELECT a FROM t FOR UPDATE"),
        ("SELECT a FROM t ORDER BY a DESC LIMIT 1", "SELECT a FROM t LIMIT 1"),
        ("SELECT a FROM (SELECT b FROM t ORDER BY b) x", "SELECT a FROM (SELECT b FROM t) x"),
        ("SELECT a FROM t ORDER BY t.a, t.b", "SELECT a FROM t"),
    ],
)
def test_order_by_is_taken_out(text: str, without: str) -> None:
    assert mutator._ORDER.sub("", text) == without


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("SELECT pg_advisory_xact_lock(hashtext(%s))", "SELECT (num_nonnulls(hashtext(%s)) >= 0)"),
        ("SELECT pg_try_advisory_lock(1, %s)", "SELECT (num_nonnulls(1, %s) >= 0)"),
        ("SELECT a FROM t FOR UPDATE SKIP LOCKED", "SELECT a FROM t"),
        ("SELECT a FROM t LOCK IN SHARE MODE NOWAIT", "SELECT a FROM t"),
        ("LOCK TABLE t", "SELECT 1"),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SELECT 1"),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
    ],
)
def test_locks_are_taken_out_and_placeholders_stay(text: str, without: str) -> None:
    assert protection.without(text)[0] == without


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            'UPDATE "shop_seat" SET "left" = ("shop_seat"."left" - %s) WHERE "id" = %s',
            '("shop_seat"."left" - %s)',
        ),
        ("UPDATE `seat` SET `left` = (`seat`.`left` - %s) WHERE id = 1", "(`seat`.`left` - %s)"),
        ("UPDATE seat SET free = free - 1 WHERE id = 1", "free - 1"),
        ("UPDATE seat SET free = free - 1, taken = 2 WHERE id = 1", ""),
        ("UPDATE seat SET free = %s WHERE id = 1", ""),
    ],
)
def test_a_change_in_place_is_seen(text: str, value: str) -> None:
    """Also Django's `F()`, with each database's quotes."""
    found = mutator._CHANGED.match(text)
    assert (found["value"] if found else "") == value


def advised(sql: Any) -> bool:
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", ["seats"])
        left = sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()[0]
        sql.execute("UPDATE account SET balance = %s WHERE id = 1", [left - 1])
    return True


def test_an_advisory_lock_with_a_placeholder(trial: Callable[..., Result]) -> None:
    """The must-fail control breaks without it, and says nothing; so does the mutation."""
    result = trial([(advised,), (advised,)], setup=accounts, mutate=True)
    assert (result.verdict, result.notes) == ("kept", ())
    assert {each.word for each in result.mutations if each.mutation.kind == LOCK} == {"violated"}


async def by_coroutine() -> bool:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as sql:
        found = await (await sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE")).fetchone()
        assert found
        await sql.execute("UPDATE account SET balance = %s WHERE id = 1", [found[0] - 1])
    return True


def test_a_coroutine(trial: Callable[..., Result]) -> None:
    """Its transaction stays as it is."""
    result = trial([(by_coroutine,), (by_coroutine,)], setup=accounts, mutate=True)
    assert [(each.mutation.kind, each.word) for each in result.mutations] == [(LOCK, "violated")]


def strict(sql: Any) -> bool:
    sql.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    with sql.transaction():
        left = sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()[0]
        sql.execute("UPDATE account SET balance = %s WHERE id = 1", [left - 1])
    return True


def test_the_isolation_level_is_taken_away(trial: Callable[..., Result]) -> None:
    failures = [psycopg.errors.SerializationFailure]
    result = trial([(strict,), (strict,)], setup=accounts, mutate=True, refusals=failures)
    assert (result.verdict, result.notes) == ("kept", ())
    assert {each.word for each in result.mutations if each.mutation.kind == LEVEL} == {"violated"}


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        (("SET", "k", "v", "NX"), ["SET", "k", "v"]),
        (("SET", "k", "NX", "PX", 5, "nx"), ["SET", "k", "NX", "PX", 5]),
        (("SET", "NX", "NX"), None),
    ],
)
def test_only_an_option_is_taken_out_of_a_set(words: tuple[object, ...], plain: list[object] | None) -> None:
    """A key or a value may be called NX."""
    assert protection.taken_if_free(words) == ((plain, "SET NX") if plain else (words, ""))
