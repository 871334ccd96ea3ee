"""A deferred trigger looks as COMMIT begins. Others can commit between its look and the commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.scenarios.test_under_way import Operation, by_itself, in_one, opened

Trial = Callable[..., Result]
LATE = """
CREATE TABLE IF NOT EXISTS guest (who text);
TRUNCATE guest;
CREATE OR REPLACE FUNCTION one_guest() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    {before} IF (SELECT count(*) FROM guest) > 1 THEN RAISE EXCEPTION 'full'; END IF; RETURN NULL; END $$;
CREATE OR REPLACE FUNCTION comes() RETURNS void LANGUAGE sql AS $$ INSERT INTO guest VALUES ('somebody') $$;
DROP TRIGGER IF EXISTS one_guest ON guest;
CREATE CONSTRAINT TRIGGER one_guest AFTER INSERT ON guest {when} FOR EACH ROW EXECUTE FUNCTION one_guest();
"""
DEFERRED, DEFERRABLE = "DEFERRABLE INITIALLY DEFERRED", "DEFERRABLE INITIALLY IMMEDIATE"
#: what writes to that table where no text shows it
BEYOND = """
CREATE OR REPLACE VIEW everybody AS SELECT who FROM guest;
CREATE TABLE IF NOT EXISTS door (id int);
CREATE OR REPLACE FUNCTION opens() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM comes(); RETURN NULL; END $$;
CREATE OR REPLACE TRIGGER opens AFTER INSERT ON door FOR EACH ROW EXECUTE FUNCTION opens();
CREATE OR REPLACE FUNCTION defers() RETURNS void LANGUAGE plpgsql AS $$ BEGIN SET CONSTRAINTS ALL DEFERRED; END $$;
"""
COMES = "INSERT INTO guest VALUES ('somebody')"


def late(when: str = DEFERRED, before: str = "", more: str = "") -> Callable[[], None]:
    return opened(LATE.format(when=when, before=before) + more)


def enters(*queries: str, how: Callable[..., Operation] = in_one) -> Operation:
    """Returns whether it was let in."""

    def operation(sql: Any) -> bool:
        try:
            how(*queries)(sql)
        except psycopg.errors.RaiseException:
            return False
        return True

    return operation


def by_psycopg(sql: Any) -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(COMES)
        try:
            connection.commit()
        except psycopg.errors.RaiseException:
            return not connection.execute("SELECT 1 AS it_goes_on").rowcount
    return True


async def by_asyncio() -> bool:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as connection:
        await connection.execute(COMES)
        try:
            await connection.commit()
        except psycopg.errors.RaiseException:
            return False
    return True


def one_is_in(ann: object, bob: object) -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        found = connection.execute("SELECT count(*) FROM guest").fetchone()
    inside = [ann, bob].count(True)
    assert found == (inside,), "what was rolled back is told as committed, or the other way round"
    return inside <= 1


@pytest.mark.deep
@pytest.mark.parametrize(
    "operation",
    [
        enters(COMES),
        enters(COMES, how=by_itself),
        enters("BEGIN", COMES, "end;", how=by_itself),
        by_psycopg,
        by_asyncio,
        enters("SELECT comes()"),
        enters("INSERT INTO everybody VALUES ('somebody')"),
        enters("INSERT INTO door VALUES (1)"),
    ],
    ids=["a block", "one command", "END", "commit()", "asyncio", "a function", "a view", "a trigger"],
)
def test_two_that_commit_at_the_same_moment_do_not_see_each_other(trial: Trial, operation: Operation) -> None:
    result = trial([operation, operation], setup=late(more=BEYOND), invariant=one_is_in, control=False)
    assert result.verdict == VIOLATED, str(result)
    assert "COMMIT begins" in str(result)


@pytest.mark.deep
@pytest.mark.parametrize("defers", ["SET CONSTRAINTS ALL DEFERRED", "SELECT defers()"])
def test_a_trigger_that_a_transaction_defers(trial: Trial, defers: str) -> None:
    setup = late(DEFERRABLE, more=BEYOND)
    result = trial([enters(defers, COMES)] * 2, setup=setup, invariant=one_is_in, control=False)
    assert result.verdict == VIOLATED, str(result)


@pytest.mark.deep
def test_rows_that_go_with_others(trial: Trial) -> None:
    """The trigger is that of a table which no text names: a host takes his guests with him, and one has to stay."""
    leaves = """
CREATE TABLE IF NOT EXISTS host (id int PRIMARY KEY);
CREATE TABLE IF NOT EXISTS stays (host int REFERENCES host ON DELETE CASCADE);
TRUNCATE host, stays;
INSERT INTO host VALUES (1), (2);
INSERT INTO stays VALUES (1), (2);
CREATE OR REPLACE FUNCTION one_stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM stays) = 0 THEN RAISE EXCEPTION 'empty'; END IF; RETURN NULL; END $$;
DROP TRIGGER IF EXISTS one_stays ON stays;
CREATE CONSTRAINT TRIGGER one_stays AFTER DELETE ON stays DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION one_stays();
"""

    def not_both(ann: object, bob: object) -> bool:
        return (ann, bob) != (True, True)

    workers = [enters("DELETE FROM host WHERE id = 1"), enters("DELETE FROM host WHERE id = 2")]
    result = trial(workers, setup=opened(leaves), invariant=not_both, control=False)
    assert result.verdict == VIOLATED, str(result)
    assert "COMMIT begins" in str(result)


@pytest.mark.deep
def test_the_same_trigger_at_once(trial: Trial) -> None:
    result = trial([enters(COMES)] * 2, setup=late(""), invariant=one_is_in, control=False)
    assert result.verdict == VIOLATED, str(result)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("when", [DEFERRED, DEFERRABLE, f"{DEFERRED} and at once"])
def test_a_trigger_that_locks_before_it_looks_keeps(trial: Trial, when: str) -> None:
    """What it locks, the transaction holds until it has committed."""
    setup = late(when.removesuffix(" and at once"), before="PERFORM pg_advisory_xact_lock(1);")
    asked = ("SET CONSTRAINTS ALL IMMEDIATE",) if "and at once" in when else ()
    result = trial([enters(COMES, *asked)] * 2, setup=setup, invariant=one_is_in, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


def test_a_commit_behind_other_statements(trial: Trial) -> None:
    def at_once(sql: Any) -> None:
        sql.execute(f"BEGIN; {COMES}; COMMIT")

    with pytest.raises(Mistake, match=r"inside of that COMMIT.* by execute\(\)"):
        trial([at_once, at_once], setup=late(), invariant=one_is_in, control=False)


@pytest.mark.deep
@pytest.mark.parametrize("fault", ["crashes", "lost_replies", "pauses"])
def test_under_a_fault(trial: Trial, fault: str) -> None:
    """Also in between: the trigger has looked, and the worker dies, or does not hear of it."""
    setup = late(before="PERFORM pg_advisory_xact_lock(1);")

    def at_most_one() -> bool:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            return connection.execute("SELECT count(*) <= 1 FROM guest").fetchone() == (True,)

    result = trial([by_psycopg, by_psycopg], setup=setup, invariant=at_most_one, control=False, **{fault: 1})
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


@pytest.mark.deep
def test_double_entry(trial: Trial) -> None:
    """Each entry's lines sum to zero, in the end."""
    balanced = """
CREATE TABLE IF NOT EXISTS line (entry int, amount int);
TRUNCATE line;
CREATE OR REPLACE FUNCTION balanced() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT sum(amount) FROM line WHERE entry = NEW.entry) <> 0 THEN RAISE EXCEPTION 'unbalanced'; END IF;
    RETURN NULL; END $$;
DROP TRIGGER IF EXISTS balanced ON line;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON line DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION balanced();
"""
    books = enters("INSERT INTO line VALUES (1, -70)", "INSERT INTO line VALUES (1, 70)")
    half = enters("INSERT INTO line VALUES (2, -70)")

    def both(ann: object, bob: object) -> bool:
        return (ann, bob) == (True, False)

    result = trial([books, half], setup=opened(balanced), invariant=both, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)
