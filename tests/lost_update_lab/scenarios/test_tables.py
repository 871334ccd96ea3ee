"""Operations that make, alter or drop tables are not judged: what they leave would be found by the next schedule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.servers.postgres import ddl
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.scenarios.shop import one_voucher
from tests.test_house import ROOT

Trial = Callable[..., Result]
TAKE = "UPDATE voucher SET uses = uses - 1"
#: a table that functions make, so that no text shows it; one of them hides what it is told
MAKE = """
CREATE OR REPLACE FUNCTION makes() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE 'CREATE TABLE IF NOT EXISTS newer (id int)'; END $$;
CREATE MATERIALIZED VIEW uses_left AS SELECT sum(uses) FROM voucher;
CREATE OR REPLACE FUNCTION makes_in_silence() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    CREATE TABLE newer (id int); EXCEPTION WHEN OTHERS THEN NULL; END $$;
CREATE OR REPLACE FUNCTION makes_a_temporary_one() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    CREATE TEMP TABLE mine (id serial PRIMARY KEY, b int UNIQUE); DROP TABLE mine; END $$;
CREATE OR REPLACE FUNCTION makes_one_of_the_last() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.uses < 0 THEN CREATE TABLE newer (id int); END IF; RETURN NEW; END $$;
"""


def with_functions() -> None:
    one_voucher()
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(MAKE)


def sends(*commands: str) -> Callable[[], None]:
    def operation() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            for command in commands:
                connection.execute(command)

    return operation


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    "command",
    [
        "CREATE TABLE IF NOT EXISTS newer (id int)",  # PostgreSQL refuses one of two: a unique index of its catalogue
        "CREATE TABLE newer (id int)",
        "/* anew */ create unlogged table newer (id int)",
        "SELECT * INTO newer FROM voucher",
        "ALTER TABLE voucher ADD COLUMN IF NOT EXISTS more int DEFAULT 0",
        "ALTER TABLE ONLY voucher ADD COLUMN IF NOT EXISTS more int DEFAULT 0",
        "DROP TABLE IF EXISTS none, redemption",
        "UPDATE voucher SET uses = 1; CREATE TABLE IF NOT EXISTS newer (id int)",
        "DO $$ BEGIN CREATE TABLE IF NOT EXISTS newer (id int); END $$",
        "CREATE INDEX ON voucher (uses)",
        "CREATE OR REPLACE FUNCTION seven() RETURNS int LANGUAGE sql AS 'SELECT 7'",
        "SELECT makes()",
        "SELECT makes_in_silence()",
        "DO $$ BEGIN EXECUTE 'CREATE TABLE IF NOT EXISTS newer (id int)'; END $$",
        "EXPLAIN ANALYZE CREATE TABLE newer AS SELECT * FROM voucher",
        "GRANT SELECT ON voucher TO PUBLIC",
        "CREATE ROLE somebody",
        "CREATE SCHEMA other",
        "COMMENT ON TABLE voucher IS 'they are all used up'",
    ],
)
def test_it_was_kept_or_said_to_fail(trial: Trial, command: str) -> None:
    with pytest.raises(Mistake, match="puts rows back, and no tables") as mistake:
        trial([sends(command), sends(command)], setup=with_functions)
    assert "make it in the setup" in str(mistake.value)


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        ("REFRESH MATERIALIZED VIEW uses_left", "a plain table instead of the materialized view"),
        ("UPDATE voucher SET uses = pg_backend_pid()", "let the caller say who it is"),
    ],
)
def test_the_remedy_fits(trial: Trial, command: str, remedy: str) -> None:
    """A view that is refreshed exists already; the number of a session is another one each time."""
    with pytest.raises(Mistake, match=remedy):
        trial([sends(command), sends(command)], setup=with_functions)


def by_xmin(sql: Any) -> None:
    (version,) = sql.execute("SELECT xmin::text FROM voucher").fetchone()
    sql.execute("UPDATE voucher SET uses = uses - 1 WHERE xmin::text = %s", [version])
    (version,) = sql.execute("SELECT xmin::text FROM voucher").fetchone()
    sql.execute("UPDATE voucher SET uses = uses - 1 WHERE xmin::text = %s", [version])


def test_a_number_of_the_servers_own_is_no_version(trial: Trial) -> None:
    with pytest.raises(Mistake, match="use a version column instead, or a number from a sequence"):
        trial([by_xmin, by_xmin], setup=with_functions)


@pytest.mark.deep
@pytest.mark.parametrize(
    "commands",
    [
        ["CREATE TABLE IF NOT EXISTS voucher (code text)"],  # the setup has made it
        ["CREATE TEMP TABLE mine (id int) ON COMMIT DROP", "INSERT INTO mine VALUES (1)"],
        [
            "CREATE TEMPORARY TABLE mine (id int)",
            "CREATE INDEX ON mine (id)",
            "ALTER TABLE mine ADD b int",
            "DROP TABLE mine",
        ],
        ["SELECT 'text INTO a; CREATE TABLE'"],
        ["SELECT makes_a_temporary_one()"],
        ["DO $$ BEGIN EXECUTE 'CREATE TABLE IF NOT EXISTS voucher (code text)'; END $$"],
    ],
)
def test_what_makes_nothing_that_another_session_sees(trial: Trial, commands: list[str]) -> None:
    result = trial([sends(*commands, TAKE), sends(*commands, TAKE)], setup=with_functions, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)


@pytest.mark.deep
def test_one_of_the_same_name_in_another_schema(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its text it is the one that the setup has made. The control: only PostgreSQL says that it is not."""

    def with_another_schema() -> None:
        with_functions()
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute("DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other")

    makes = sends("SET search_path = other", "CREATE TABLE IF NOT EXISTS voucher (code text)")
    with pytest.raises(Mistake, match="puts rows back, and no tables"):
        trial([makes, makes], setup=with_another_schema)
    monkeypatch.setattr(ddl, "_REFUSE", ddl._REFUSE.replace("IF makes AND", "IF false AND"))
    assert trial([makes, makes], setup=with_another_schema, control=False).kept


@pytest.mark.deep
def test_one_that_is_made_only_where_they_meet(trial: Trial) -> None:
    """No serial order shows it, and no text."""

    def last_use() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            (uses,) = connection.execute("SELECT uses FROM voucher").fetchone() or (0,)
            if uses:
                connection.execute(TAKE)

    def with_a_trigger() -> None:
        with_functions()
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(
                "CREATE TRIGGER makes BEFORE UPDATE ON voucher FOR EACH ROW EXECUTE FUNCTION makes_one_of_the_last()"
            )

    result = trial([last_use, last_use], setup=with_a_trigger, invariant=lambda: True)
    assert result.verdict == "inconclusive"
    assert "puts rows back, and no tables" in result.cause


@pytest.mark.deep
def test_whoever_comes_later_may_make_tables(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    """The trigger that refuses is gone with the search."""
    trial([sends(TAKE), sends(TAKE)], setup=one_voucher, control=False)
    with psycopg.connect(scenario_urls[0], autocommit=True) as connection:
        connection.execute("CREATE TABLE later (id int); DROP TABLE later")
        found = connection.execute("SELECT evtname FROM pg_event_trigger").fetchall()
    assert not found


#: a search that is killed once it holds commands between their look and their lock
KILLED = """
import os, signal, sys
import psycopg
from lost_update_lab import explore
from tests.lost_update_lab.scenarios.shop import one_voucher

def takes():
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("UPDATE voucher SET uses = (SELECT max(uses) - 1 FROM voucher)")
        if connection.execute("SELECT FROM pg_trigger WHERE tgname = 'explorer_looks'").fetchall():
            signal.raise_signal(signal.SIGKILL)

explore([takes, takes], setup=one_voucher, database=sys.argv[1], redis=sys.argv[2], disposable=True)
"""
OF_THE_EXPLORER = """
SELECT evtname FROM pg_event_trigger UNION ALL
SELECT tgname FROM pg_trigger WHERE tgname LIKE 'explorer%'
"""
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"


@pytest.mark.deep
def test_what_a_killed_search_leaves_does_nothing(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    """And the next search takes it away."""
    search = [sys.executable, "-c", KILLED, *scenario_urls]
    with psycopg.connect(scenario_urls[0], autocommit=True) as connection:
        try:
            before = set(connection.execute(SESSIONS).fetchall())
            ended = subprocess.run(search, cwd=ROOT, capture_output=True, check=False)
            assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
            while set(connection.execute(SESSIONS).fetchall()) - before:
                pass  # the server learns that its client is gone
            left = {name for (name,) in connection.execute(OF_THE_EXPLORER)}
            assert left == {"explorer_makes", "explorer_drops", "explorer_login", "explorer_looks"}
            connection.execute("CREATE TABLE later (id int); DROP TABLE later")
            connection.execute("UPDATE voucher SET uses = 7")
            assert trial([sends(TAKE), sends(TAKE)], control=False).kept
            assert not connection.execute(OF_THE_EXPLORER).fetchall()
            assert connection.execute("SELECT uses FROM voucher").fetchall() == [(7,)]
        finally:
            connection.execute("DROP TABLE IF EXISTS voucher, redemption")


@pytest.mark.deep
def test_a_table_that_is_locked_as_a_whole(trial: Trial) -> None:
    """The explorer's own look at the rows waited for the worker, and the worker for its turn."""
    taken = sends("LOCK TABLE voucher", "SELECT uses FROM voucher", TAKE)
    result = trial([taken, taken], setup=one_voucher, crashes=1, control=False)
    assert result.verdict == "inconclusive"
    assert "cannot look at a table that a worker has locked" in result.cause
    assert "IN EXCLUSIVE MODE" in result.remedy
    read_by_others = sends("LOCK TABLE voucher IN EXCLUSIVE MODE", "SELECT uses FROM voucher", TAKE)
    assert trial([read_by_others, read_by_others], setup=one_voucher, control=False).kept
