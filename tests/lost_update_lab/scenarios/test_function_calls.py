"""Others come between the statements of a function, however it is called. All of this was one step, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.under_test.operations import STALLED
from tests.lost_update_lab.scenarios.test_functions import (
    GIVE,
    LOCK_BOTH,
    TAKE,
    Trial,
    opened,
    opposite,
    transfers,
)

SPLIT = "source text := split_part(accounts, ' ', 1); target text := split_part(accounts, ' ', 2);"
#: the same for both accounts in one text, as the only argument
BOTH = f"""
DROP TYPE IF EXISTS pair CASCADE;
DROP DOMAIN IF EXISTS moved;
CREATE OR REPLACE FUNCTION moves(accounts text) RETURNS bool LANGUAGE plpgsql AS $$ DECLARE {SPLIT} BEGIN
    {TAKE}; {GIVE}; RETURN true; END $$;
CREATE DOMAIN moved AS text CHECK (moves(VALUE));
CREATE TYPE pair AS (accounts text);
CREATE OR REPLACE FUNCTION to_pair(accounts text) RETURNS pair LANGUAGE plpgsql AS $$ BEGIN
    PERFORM moves(accounts); RETURN ROW(accounts); END $$;
CREATE CAST (text AS pair) WITH FUNCTION to_pair(text);
"""
CALLS = {
    "VALUES": "VALUES (transfer('{}', '{}'))",
    "CREATE TABLE AS": "CREATE TEMP TABLE moved ON COMMIT DROP AS SELECT moves('{} {}')",
    "a domain": "SELECT '{} {}'::moved",
    "a cast": "SELECT '{} {}'::text::pair",
    "a cursor": "DECLARE c CURSOR FOR SELECT transfer('{}', '{}'); FETCH c",
    "EXPLAIN ANALYZE": "EXPLAIN ANALYZE SELECT transfer('{}', '{}')",
    "DO": "DO $$ BEGIN PERFORM transfer('{}', '{}'); END $$",
}


def sends(text: str) -> Callable[..., None]:
    """One command after the other."""

    def operation(source: str, target: str, sql: Any) -> None:
        whole = text.format(source, target)
        with sql.transaction():
            for command in [whole] if "$$" in text else whole.split("; "):
                sql.execute(command)

    return operation


def fetches(source: str, target: str, sql: Any) -> None:
    """A cursor in the server: psycopg makes it, and so does Django's iterator()."""
    with sql.transaction(), sql.cursor("both") as cursor:
        cursor.execute("SELECT transfer(%s, %s)", [source, target])
        cursor.fetchall()


@pytest.mark.deep
@pytest.mark.parametrize(
    "how",
    [pytest.param(how, marks=[pytest.mark.answers_change] * (how == "EXPLAIN ANALYZE")) for how in CALLS],
)
def test_every_way_to_call_a_function(trial: Trial, how: str) -> None:
    schema = transfers(TAKE, GIVE) + BOTH
    result = trial(opposite(sends(CALLS[how])), setup=opened(schema), control=False)
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)


@pytest.mark.deep
def test_a_cursor_in_the_server(trial: Trial) -> None:
    result = trial(opposite(fetches), setup=opened(transfers(TAKE, GIVE)), control=False)
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)


@pytest.mark.deep
def test_a_cursor_in_the_server_that_locks_in_one_order(trial: Trial) -> None:
    result = trial(opposite(fetches), setup=opened(transfers(LOCK_BOTH, TAKE, GIVE)), control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


CATCHES = f"BEGIN {GIVE}; EXCEPTION WHEN deadlock_detected THEN NULL; END"
DYNAMIC = """
CREATE OR REPLACE FUNCTION calls(which text, source text, target text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('SELECT %I($1, $2)', which) USING source, target; END $$;
"""


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "command",
    [
        "SELECT calls('transfer', '{}', '{}')",
        "SELECT calls('trans' || 'fer', '{}', '{}')",
        pytest.param(CALLS["a cursor"], marks=pytest.mark.deep),
        pytest.param(CALLS["DO"], marks=pytest.mark.deep),
    ],
)
def test_a_deadlock_that_a_function_would_catch_which_no_text_names(trial: Trial, command: str) -> None:
    result = trial(opposite(sends(command)), setup=opened(transfers(TAKE, CATCHES) + DYNAMIC), control=False)
    assert (result.verdict, "goes on after an error" in result.cause) == (INCONCLUSIVE, True), str(result)
