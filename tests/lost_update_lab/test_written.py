"""Only the tables that a schedule has written are looked at: every way to write one is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lost_update_lab import Mistake, Result, explore, worker
from lost_update_lab.model.errors import Broken
from lost_update_lab.snapshot import functions, large, written
from lost_update_lab.snapshot.postgres import PostgresSnapshot
from lost_update_lab.snapshot.written import publish

SCHEMA = """
CREATE TABLE customer (id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE invoice (id serial PRIMARY KEY, customer int REFERENCES customer ON DELETE CASCADE, total numeric);
CREATE TABLE audit (id serial PRIMARY KEY, told text);
CREATE TABLE many (at int NOT NULL, told text) PARTITION BY RANGE (at);
CREATE TABLE many_1 PARTITION OF many FOR VALUES FROM (0) TO (10);
CREATE UNLOGGED TABLE quick (id int, double int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO customer (name) VALUES ('Ann'), ('Bob');
INSERT INTO invoice (customer, total) VALUES (1, 10), (2, 20);
INSERT INTO audit (told) VALUES ('first'), ('second');
INSERT INTO many VALUES (1, 'one');
INSERT INTO quick VALUES (1);
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO audit (told) VALUES (TG_OP); RETURN NULL; END $$;
CREATE TRIGGER noted AFTER UPDATE ON invoice EXECUTE FUNCTION noted();
CREATE FUNCTION renamed() RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN EXECUTE 'UPDATE cust' || 'omer SET name = upper(name)'; END $$;
"""
#: what a session sends → the tables that it changes
WAYS = {
    "INSERT INTO customer (name) VALUES ('Eve')": ["customer"],
    "UPDATE invoice SET total = 0": ["audit", "invoice"],  # by a trigger
    "DELETE FROM customer WHERE id = 1": ["customer", "invoice"],  # in cascade
    "SELECT renamed()": ["customer"],  # by a function, which puts the name together
    "TRUNCATE audit, invoice": ["audit", "invoice"],  # which counts no row
    "INSERT INTO many VALUES (2, 'two')": ["many_1"],
    "INSERT INTO quick VALUES (2)": ["quick"],
    "WITH gone AS (DELETE FROM quick RETURNING id) INSERT INTO audit (told) SELECT id FROM gone": [
        "audit",
        "quick",
    ],
    "MERGE INTO customer USING (VALUES (1)) AS n (key) ON key = id WHEN MATCHED THEN DELETE": [
        "customer",
        "invoice",
    ],
    "BEGIN; SAVEPOINT one; DELETE FROM quick; ROLLBACK TO one; UPDATE many SET told = ''; COMMIT": ["many_1"],
    "ALTER TABLE invoice ALTER total TYPE int USING 7": ["invoice"],  # a new file
    "UPDATE quick SET id = 5; SELECT pg_stat_reset()": ["quick"],  # the counters are gone
    "BEGIN; DELETE FROM quick; ROLLBACK": [],
    "UPDATE quick SET id = id": [],  # written, and the same
    "SELECT setval('customer_id_seq', 99)": [],
    "UPDATE audit SET id = id + 10": ["audit"],
    "DELETE FROM audit WHERE id = 1; INSERT INTO audit VALUES (1, 'other')": ["audit"],
    "DELETE FROM audit WHERE id = 1; INSERT INTO audit VALUES (1, 'first')": [],
    "ALTER TABLE audit DROP CONSTRAINT audit_pkey; UPDATE audit SET id = 1, told = 'same key' WHERE id = 2": [
        "audit"
    ],
}
SAME = "SELECT (SELECT count(*) FROM customer), (SELECT sum(total) FROM invoice), \
(SELECT string_agg(id || told, ',' ORDER BY id) FROM audit), \
(SELECT count(*) FROM many), (SELECT sum(double) FROM quick), (SELECT last_value FROM customer_id_seq)"


@pytest.fixture
def database(scenario_urls: tuple[str, str]) -> Iterator[str]:
    """A database of its own, with SCHEMA."""
    url = scenario_urls[0]
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("CREATE DATABASE test_written")
        try:
            there = url.replace("/scenarios?", "/test_written?")
            with psycopg.connect(there, autocommit=True) as inside:
                inside.execute(SCHEMA)
            yield there
        finally:
            sql.execute("DROP DATABASE test_written WITH (FORCE)")


@pytest.fixture(params=["small tables", "large tables"])
def snapshot(
    database: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresSnapshot]:
    monkeypatch.setattr(functions, "LARGE_FROM", 1 if request.param == "large tables" else large.LARGE_FROM)
    monkeypatch.setattr(written, "FEW_TABLES", 9 if request.param == "small database" else 0)
    found = PostgresSnapshot(psycopg.connect(database, autocommit=True))
    yield found
    found.close()


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as found:
        yield found


@pytest.mark.parametrize("snapshot", ["small tables", "large tables", "small database"], indirect=True)
def test_every_way_to_write(snapshot: PostgresSnapshot, session: psycopg.Connection[Any]) -> None:
    opening = session.execute(SAME).fetchone()
    for way, tables in WAYS.items():
        session.execute(way)
        assert publish(session.pgconn)
        assert [table.title for table in snapshot.changed()] == tables, way
        snapshot.restore()
        assert session.execute(SAME).fetchone() == opening, way
        assert not snapshot.changed()


def test_copy(snapshot: PostgresSnapshot, session: psycopg.Connection[Any]) -> None:
    with session.cursor().copy("COPY audit (told) FROM STDIN") as copy:
        copy.write_row(["copied"])
    publish(session.pgconn)
    assert [table.title for table in snapshot.changed()] == ["audit"]


def test_a_table_that_no_counter_knows_is_not_read(snapshot: PostgresSnapshot, database: str) -> None:
    """The look does not wait for a session that has locked a table which nobody wrote."""
    with psycopg.connect(database) as other:
        other.execute("LOCK TABLE quick")
        snapshot.connection.execute("SET lock_timeout = '1s'")
        snapshot._runs = 4  # so all are not compared now
        snapshot.restore()
        assert not snapshot.changed()


def test_a_change_that_no_counter_shows_is_found_out(
    snapshot: PostgresSnapshot, session: psycopg.Connection[Any]
) -> None:
    session.execute("SET track_counts = off; UPDATE customer SET name = ''")
    assert not publish(session.pgconn)
    assert not snapshot.changed()
    with pytest.raises(
        Broken, match="the table customer was changed, and PostgreSQL's counters do not show it"
    ):
        snapshot.restore()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("setting", ["SET track_counts = off", "SET LOCAL track_counts = off"])
def test_a_worker_that_does_not_count(database: str, scenario_urls: tuple[str, str], setting: str) -> None:
    """It is looked at every table; or it is said."""

    def renames(name: str, sql: Any) -> None:
        with sql.transaction():
            sql.execute(setting)
            (old,) = sql.execute("SELECT name FROM customer WHERE id = 1").fetchone()
            sql.execute("UPDATE customer SET name = %s WHERE id = 1", [old + name])

    def explored() -> Result:
        return explore(
            [worker("Ann", renames, "a"), worker("Bob", renames, "b")],
            database=database,
            redis=scenario_urls[1],
            disposable=True,
        )

    if "LOCAL" in setting:
        with pytest.raises(Mistake, match=r"counters do not show it. The remedy: leave track_counts on"):
            explored()
    else:
        assert explored().verdict == "violated"


@pytest.mark.deep
def test_an_invariant_that_writes_leaves_nothing(database: str, scenario_urls: tuple[str, str]) -> None:
    def told(word: str) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
            sql.execute("INSERT INTO audit (told) VALUES (%s)", [word])

    def counted() -> bool:
        with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
            sql.execute("INSERT INTO quick VALUES (7)")
            row = sql.execute("SELECT count(*) FROM quick").fetchone()
        assert row
        seen.append(row[0])
        return True

    seen: list[int] = []
    explore(
        [(told, "a"), (told, "b")],
        invariant=counted,
        database=database,
        redis=scenario_urls[1],
        disposable=True,
        control=False,
    )
    assert set(seen[1:]) == {2}


@pytest.mark.deep
def test_a_command_that_goes_through_as_its_schedule_ends(
    database: str, scenario_urls: tuple[str, str]
) -> None:
    """It waited for a row. The rollback of who held it lets it commit, before anybody can cancel it."""

    def renames(sql: Any) -> None:
        with sql.transaction():
            (name,) = sql.execute("SELECT name FROM customer WHERE id = 1 FOR UPDATE").fetchone()
            sql.execute("UPDATE customer SET name = %s WHERE id = 1", [name + "a"])

    def appends(sql: Any) -> None:
        sql.execute("UPDATE customer SET name = name || 'b' WHERE id = 1")

    found = explore([renames, appends], database=database, redis=scenario_urls[1], disposable=True)
    assert found.kept, str(found)
