"""After an exploration the database is as it was: the same setup can run again, whatever it makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result

Trial = Callable[..., Result]
BEFORE = """
CREATE TABLE stock (left_over int);
INSERT INTO stock VALUES (1);
CREATE MATERIALIZED VIEW in_stock AS SELECT sum(left_over) AS left_over FROM stock;
CREATE MATERIALIZED VIEW unfilled AS SELECT left_over FROM stock WITH NO DATA;
CREATE FUNCTION kept() RETURNS int LANGUAGE sql AS 'SELECT 1';
"""
MADE = """
CREATE TYPE mood AS ENUM ('sad', 'merry');
CREATE TYPE pair AS (one int, other int);
CREATE DOMAIN price AS numeric CHECK (value > 0);
CREATE SEQUENCE numbers;
CREATE SCHEMA "Other shop";
CREATE TABLE "Other shop"."Guest" (id serial PRIMARY KEY, mood mood, paid price, seats pair);
INSERT INTO "Other shop"."Guest" (mood) VALUES ('sad');
CREATE VIEW guests AS SELECT count(*) AS n FROM stock;
CREATE MATERIALIZED VIEW of_stock AS SELECT left_over FROM stock;
CREATE FUNCTION seven(int, text DEFAULT '') RETURNS int LANGUAGE sql AS 'SELECT 7';
CREATE PROCEDURE nothing() LANGUAGE sql AS 'SELECT 1';
CREATE EXTENSION vector;
"""
ALL = """
SELECT 'c', relname FROM pg_class WHERE relnamespace = 'public'::regnamespace UNION ALL
SELECT 'p', proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace UNION ALL
SELECT 't', typname FROM pg_type WHERE typnamespace = 'public'::regnamespace UNION ALL
SELECT 'n', nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1, 2
"""


@pytest.fixture
def found(scenario_urls: tuple[str, str]) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(scenario_urls[0], autocommit=True) as connection:
        connection.execute(BEFORE)
        try:
            yield connection
        finally:
            connection.execute(
                "DROP MATERIALIZED VIEW in_stock, unfilled; DROP TABLE stock; DROP FUNCTION kept"
            )


def sends(text: str) -> Callable[[], None]:
    def setup() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(text)

    return setup


def take(sql: Any) -> int:
    return int(sql.execute("UPDATE stock SET left_over = left_over - 1 RETURNING left_over").fetchone()[0])


@pytest.mark.deep
def test_the_same_setup_runs_for_each_part(trial: Trial, found: psycopg.Connection[Any]) -> None:
    before = found.execute(ALL).fetchall()
    result = trial([(take,), (take,)], setup=sends(MADE), isolation=["read committed", "serializable"])
    assert len(result.parts) == 2
    assert found.execute(ALL).fetchall() == before


@pytest.mark.deep
def test_a_materialized_view_that_the_setup_refreshes(trial: Trial, found: psycopg.Connection[Any]) -> None:
    refresh = "UPDATE stock SET left_over = 9; REFRESH MATERIALIZED VIEW in_stock; REFRESH MATERIALIZED VIEW unfilled"
    assert trial([(take,), (take,)], setup=sends(refresh)).kept
    assert found.execute("SELECT left_over FROM in_stock").fetchall() == [(1,)]
    filled = "SELECT relispopulated FROM pg_class WHERE relname = 'unfilled'"
    assert found.execute(filled).fetchall() == [(False,)]


def test_what_replaces_another_of_its_name_stays(trial: Trial, found: psycopg.Connection[Any]) -> None:
    """Nobody could make the old one again."""
    anew = "DROP FUNCTION kept; CREATE FUNCTION kept() RETURNS int LANGUAGE sql AS 'SELECT 2'"
    assert trial([(take,), (take,)], setup=sends(anew)).kept
    assert found.execute("SELECT kept()").fetchall() == [(2,)]


CHECKED = """
CREATE TABLE currency (code text); INSERT INTO currency VALUES ('EUR');
CREATE FUNCTION is_known(text) RETURNS bool LANGUAGE sql AS
    'SELECT EXISTS (SELECT FROM public.currency WHERE code = $1)';
CREATE TABLE bill (code text CHECK (is_known(code))); INSERT INTO bill VALUES ('EUR');
CREATE TABLE show (starts timestamptz); INSERT INTO show VALUES ('2020-01-01');
ALTER TABLE show ADD CHECK (starts > now()) NOT VALID;
"""


@pytest.fixture
def checked(found: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    found.execute(CHECKED)
    try:
        yield found
    finally:
        found.execute("DROP TABLE currency, bill, show; DROP FUNCTION is_known")


def test_rows_are_put_back_that_their_checks_would_refuse(
    trial: Trial, checked: psycopg.Connection[Any]
) -> None:
    """One by now, one until another table is put back. The checks are in force again."""
    anew = "DELETE FROM bill; DELETE FROM currency; DELETE FROM show"
    assert trial([(take,), (take,)], setup=sends(anew), control=False).kept
    rows = checked.execute("SELECT code, starts::date::text FROM bill NATURAL JOIN currency, show")
    assert rows.fetchall() == [("EUR", "2020-01-01")]
    for refused in ("INSERT INTO bill VALUES ('XXX')", "UPDATE show SET starts = starts"):
        with pytest.raises(psycopg.errors.CheckViolation):
            checked.execute(refused)


SETTINGS = "SELECT setrole, unnest(setconfig) FROM pg_db_role_setting ORDER BY 1, 2"
SET = """
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET default_transaction_deferrable = on', current_database());
    EXECUTE format('ALTER DATABASE %I SET search_path = other, public', current_database());
    EXECUTE format('ALTER DATABASE %I RESET work_mem', current_database());
    EXECUTE format('ALTER ROLE %I SET statement_timeout = 70', current_user);
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET lock_timeout = 70', current_user, current_database());
END $$;
INSERT INTO stock VALUES (2);
"""


def test_what_new_sessions_begin_with_is_as_before(trial: Trial, found: psycopg.Connection[Any]) -> None:
    name = found.info.dbname
    found.execute(f"ALTER DATABASE {name} SET work_mem = '5MB'".encode())
    found.execute(f'ALTER DATABASE {name} SET search_path = public, "$user"'.encode())
    before = found.execute(SETTINGS).fetchall()
    try:
        result = trial([(sells,)] * 2, setup=sends(SET), control=False)
        assert (result.verdict, found.execute(SETTINGS).fetchall()) == ("kept", before)
    finally:
        found.execute(f"ALTER DATABASE {name} RESET ALL".encode())


def sells(sql: Any) -> str:
    """Its session begins with what the setup has set for the database."""
    sql.execute("UPDATE stock SET left_over = left_over - 1 WHERE left_over = 1")
    return str(sql.execute("SHOW default_transaction_deferrable").fetchone()[0])
