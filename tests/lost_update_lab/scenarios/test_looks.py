"""Somebody commits between the moment at which a command looks and the one at which it locks its row."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Fault
from lost_update_lab.schedule.pending import LOOKED
from lost_update_lab.servers.compound import looks_elsewhere
from lost_update_lab.servers.postgres.function_stops import BEFORE
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]
SCHEMA = """
DROP TABLE IF EXISTS item, total CASCADE; DROP FUNCTION IF EXISTS refresh;
CREATE TABLE item (n int NOT NULL);
CREATE TABLE total (id int PRIMARY KEY, sum int NOT NULL);
INSERT INTO total VALUES (1, 0);
CREATE FUNCTION refresh() RETURNS void LANGUAGE plpgsql AS $$
DECLARE found int; BEGIN
    SELECT coalesce(sum(n), 0) INTO found FROM item;
    UPDATE total SET sum = found WHERE id = 1;
END $$;
"""
SUM = "SELECT coalesce(sum(n), 0) FROM item"
REFRESH = "UPDATE total SET sum = (SELECT coalesce(sum(n), 0) FROM item) WHERE id = 1"


def opened() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(SCHEMA)


def adds(refresh: str, first: str = "") -> Callable[..., None]:
    """In autocommit; or in one transaction that locks the row `first`."""

    def operation(n: int, sql: Any) -> None:
        if not first:
            sql.execute("INSERT INTO item VALUES (%s)", [n])
            sql.execute(refresh)
            return
        with sql.transaction():
            sql.execute(first)
            sql.execute("INSERT INTO item VALUES (%s)", [n])
            sql.execute(refresh)

    return operation


def in_a_transaction(n: int, sql: Any) -> None:
    sql.execute("INSERT INTO item VALUES (%s)", [n])
    with sql.transaction():
        sql.execute(REFRESH)


def as_psycopg_begins_it(n: int) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("INSERT INTO item VALUES (%s)", [n])
        connection.commit()
        connection.execute("SELECT refresh()")


async def of_a_coroutine(n: int) -> None:
    async with await psycopg.AsyncConnection.connect(
        os.environ["DATABASE_URL"], autocommit=True
    ) as connection:
        await connection.execute("INSERT INTO item VALUES (%s)", [n])
        async with connection.transaction():
            await connection.execute(REFRESH)


async def of_a_task(n: int) -> None:
    async with await psycopg.AsyncConnection.connect(
        os.environ["DATABASE_URL"], autocommit=True
    ) as connection:
        await connection.execute("INSERT INTO item VALUES (%s)", [n])
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.execute(REFRESH))


def both(operation: Callable[..., None]) -> list[Any]:
    return [worker("Ann", operation, 3), worker("Bob", operation, 4)]


def is_the_sum() -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT sum, (SELECT sum(n) FROM item) FROM total").fetchone()
    return row is not None and row[0] == (row[1] or 0)


@pytest.mark.deep
@pytest.mark.parametrize("refresh", [REFRESH, "SELECT refresh()"])
def test_a_sum_that_misses_what_was_committed_meanwhile(trial: Trial, refresh: str) -> None:
    result = trial(both(adds(refresh)), setup=opened, invariant=is_the_sum)
    assert result.verdict == VIOLATED
    assert (BEFORE if "refresh()" in refresh else LOOKED) in str(result)


@pytest.mark.deep
@pytest.mark.parametrize(
    "operation",
    [in_a_transaction, as_psycopg_begins_it, of_a_coroutine, of_a_task],
    ids=lambda each: each.__name__,
)
def test_each_command_of_a_transaction_looks_for_itself(trial: Trial, operation: Callable[..., Any]) -> None:
    """They were kept."""
    result = trial(both(operation), setup=opened, invariant=is_the_sum, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)
    assert (BEFORE if operation is as_psycopg_begins_it else LOOKED) in str(result)


@pytest.mark.deep
def test_a_row_that_is_locked_before(trial: Trial) -> None:
    locked = adds(REFRESH, "SELECT id FROM total WHERE id = 1 FOR UPDATE")
    result = trial(both(locked), setup=opened, invariant=is_the_sum)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


def locks_and_looks(begins: str) -> Callable[[int], None]:
    """Its look is older than its lock. `begins`: what comes before, in a transaction of its own; or "", in the same."""

    def operation(n: int) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute("INSERT INTO item VALUES (%s)", [n])
            if begins:
                connection.commit()
            rows = connection.execute(f"SELECT id, ({SUM}) FROM total WHERE id = 1 FOR UPDATE")
            (_, found) = rows.fetchone() or (0, 0)
            connection.execute("UPDATE total SET sum = %s WHERE id = 1", [found])

    return operation


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("begins", "word"), [("commits", "inconclusive"), ("", VIOLATED)])
def test_a_select_that_locks_one_row_and_looks_at_others(trial: Trial, begins: str, word: str) -> None:
    """It was kept, and loses an item that is committed between its look and its lock. In one transaction the same is
    seen where it waits for the row."""
    result = trial(both(locks_and_looks(begins)), setup=opened, invariant=is_the_sum, control=False)
    assert result.verdict == word, str(result)
    assert ("looks at rows in a SELECT and locks others later" in str(result)) is bool(begins)


@pytest.mark.parametrize(
    ("text", "elsewhere"),
    [
        ("SELECT id FROM a WHERE n > (SELECT sum(x) FROM b) FOR UPDATE", True),
        ("SELECT * FROM a JOIN b USING (id) FOR NO KEY UPDATE OF a SKIP LOCKED", True),
        ("/* of a view */ WITH x AS (SELECT 1) SELECT * FROM a, x FOR SHARE", True),
        ("SELECT * FROM a JOIN b USING (id) FOR UPDATE", False),
        ("SELECT (SELECT sum(x) FROM b) FROM a", False),
        ("UPDATE a SET n = 1 WHERE id = (SELECT id FROM a FOR UPDATE SKIP LOCKED)", False),
        ("WITH x AS (SELECT id FROM a FOR UPDATE) UPDATE a SET n = 1 FROM x", False),
    ],
)
def test_which_select_looks_elsewhere(text: str, elsewhere: bool) -> None:
    assert looks_elsewhere(text) is elsewhere


@pytest.mark.deep
def test_with_faults_it_comes_to_its_end(trial: Trial) -> None:
    """A crash, or a reply that is lost, in the middle of it."""
    counted = "UPDATE total SET sum = sum + (SELECT count(*) FROM total) WHERE id = 1"

    def counts(sql: Any) -> None:
        sql.execute(counted)

    def no_more_than_two() -> bool:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            row = connection.execute("SELECT sum FROM total").fetchone()
        return row is not None and row[0] <= 2

    kinds = {"crashes": 1, "lost_replies": 1}
    result = trial([counts, counts], setup=opened, invariant=no_more_than_two, control=False, **kinds)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)
    assert {str(Fault.CRASH), str(Fault.LOST_REPLY)} <= set(result.hazards)


@pytest.mark.deep
@pytest.mark.parametrize("faults", [0, 1])
def test_known_or_executed_it_comes_to_the_same(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, faults: int
) -> None:
    how = {"setup": opened, "invariant": is_the_sum, "crashes": faults, "control": False}
    short = trial(both(adds(REFRESH)), **how)
    monkeypatch.setattr(Harness, "in_memory_run", lambda *_: None)
    whole = trial(both(adds(REFRESH)), **how)
    assert (short.id, short.schedules, short.hazards) == (whole.id, whole.schedules, whole.hazards)
    assert short.exhausted
    assert whole.exhausted


@pytest.mark.deep
def test_the_triggers_are_gone_with_the_search(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    trial(both(adds(REFRESH)), setup=opened, invariant=is_the_sum)
    with psycopg.connect(scenario_urls[0]) as connection:
        query = "SELECT count(*) FROM pg_trigger WHERE tgname = 'explorer_looks'"
        assert connection.execute(query).fetchone() == (0,)
