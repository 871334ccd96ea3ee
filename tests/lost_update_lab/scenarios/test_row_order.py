"""The rows of a table have the same places on disk at the beginning of every schedule.
Where the workers' own rows come to lie is a part of the state."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.servers.draws import Draws
from lost_update_lab.servers.postgres.memoised import PostgresAnswers
from lost_update_lab.under_test.operations import STALLED, VIOLATED
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


EVENTS = """
DROP TABLE IF EXISTS event, account CASCADE;
CREATE TABLE event (who text PRIMARY KEY, amount int NOT NULL DEFAULT 100);
CREATE TABLE account (name text PRIMARY KEY, balance int NOT NULL DEFAULT 0);
INSERT INTO account VALUES ('a'), ('b'), ('c');
CREATE OR REPLACE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO event VALUES ('Ann'); RETURN NULL; END $$;
CREATE TRIGGER tells AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION tells();
"""
SILENT = "DROP TRIGGER tells ON account;"


def with_events(more: str = "") -> Callable[[], None]:
    def setup() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(EVENTS + more)

    return setup


def rows(sql: Any, query: str) -> list[Any]:
    return [row if len(row) > 1 else row[0] for row in sql.execute(query)]


def adds(who: str, sql: Any) -> None:
    sql.execute("INSERT INTO event (who) VALUES (%s)", [who])


def adds_and_asks(who: str, query: str, sql: Any) -> Any:
    adds(who, sql)
    return rows(sql, query)[-1]


def adds_to(name: str, sql: Any) -> None:
    sql.execute("UPDATE account SET balance = balance + 1 WHERE name = %s", [name])


NEWEST = "SELECT who FROM event"
BEST = "SELECT who FROM event ORDER BY amount DESC LIMIT 1"
ALL = "SELECT array_agg(who) FROM event"


@pytest.mark.parametrize("first", ["Ann", pytest.param("Bob", marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    ("query", "never"),
    [
        (NEWEST, "Ann"),
        (NEWEST, "Bob"),
        (BEST, "Ann"),
        (BEST, "Bob"),
        (ALL, ["Ann", "Bob"]),
        (ALL, ["Bob", "Ann"]),
    ],
)
def test_whose_row_comes_first_is_open(trial: Trial, query: str, never: Any, first: str) -> None:
    """Whose it was depended on which worker was named first: there, the other one's was never found."""
    workers = [worker("Ann", adds_and_asks, "Ann", query), worker("Bob", adds, "Bob")]
    if first == "Bob":
        workers.reverse()
    result = trial(
        workers, setup=with_events(SILENT), invariant=lambda *told: never not in told, control=False
    )
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


def test_a_row_that_was_updated_comes_last(trial: Trial) -> None:
    def last(sql: Any) -> str:
        adds_to("a", sql)
        return str(rows(sql, "SELECT name FROM account")[-1])

    workers = [worker("Ann", last), worker("Bob", adds_to, "b")]
    for never in ("a", "b"):
        told = lambda ann, bob, never=never: ann != never  # noqa: E731
        result = trial(workers, setup=with_events(SILENT), invariant=told, control=False)
        assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


def pages(sql: Any) -> list[str]:
    """Reads what comes behind that which it has read."""
    found = rows(sql, "SELECT who FROM event")
    return found + rows(sql, f"SELECT who FROM event OFFSET {len(found)}")


def in_one(operation: Callable[..., Any], *given: Any) -> Callable[[Any], Any]:
    def operates(sql: Any) -> Any:
        with sql.transaction():
            return operation(*given, sql)

    return operates


@pytest.mark.parametrize(
    ("ann", "more"), [(in_one(adds, "Ann"), SILENT), (in_one(adds_to, "a"), "")], ids=["itself", "trigger"]
)
def test_rows_lie_in_the_order_of_writes_and_not_of_commits(
    trial: Trial, ann: Any, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann's row lies before Bob's, which is committed first: who has read Bob's does not find it behind."""
    workers = [worker("Ann", ann), worker("Bob", in_one(adds, "Bob")), worker("Cid", pages)]
    law = lambda ann, bob, read: read != ["Bob", "Bob"]  # noqa: E731
    result = trial(workers, setup=with_events(more), invariant=law, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)
    if more:
        monkeypatch.setattr(Draws, "hidden", lambda _: b"")
        monkeypatch.setattr(Draws, "around", lambda *_: b"")
    else:
        monkeypatch.setattr(PostgresAnswers, "draws_for", lambda _, op: None if op.reads else op.text[:16])
    missed = trial(workers, setup=with_events(more), invariant=law, control=False)
    assert missed.verdict != VIOLATED, "the control: it is found by that alone"


def adds_twice_and_lists(sql: Any) -> list[Any]:
    adds_to("a", sql)
    adds_to("c", sql)
    return rows(sql, "SELECT name, balance FROM account")


def adds_twice_and_takes_the_last(sql: Any) -> Any:
    return adds_twice_and_lists(sql)[-1]


@pytest.mark.parametrize(
    ("operation", "word"), [(adds_twice_and_lists, KEPT), (adds_twice_and_takes_the_last, VIOLATED)]
)
def test_a_list_in_no_stated_order_may_come_in_any(trial: Trial, operation: Any, word: str) -> None:
    workers = [worker("Ann", operation), worker("Bob", adds_to, "b")]
    result = trial(workers, setup=with_events(SILENT), control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
    assert ("in which order Ann lists its rows is not compared" in str(result)) == (word == KEPT)
