"""Rows of a restored table come in the order of the opening rows, wherever they are on disk; and stay where they are if
a command names their places."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lost_update_lab import explore, worker
from lost_update_lab.snapshot import postgres
from lost_update_lab.snapshot.postgres import PostgresSnapshot
from lost_update_lab.snapshot.written import publish

OPENING = """
DROP TABLE IF EXISTS job; CREATE TABLE job (id int PRIMARY KEY, told text DEFAULT '');
INSERT INTO job SELECT n, '' FROM generate_series(1, 3) n;
"""
ORDER, PLACES = "SELECT array_agg(id) FROM job", "SELECT array_agg(ctid::text) FROM job"
WRITES = (
    "UPDATE job SET told = told || 'a' WHERE id = {one}",
    "UPDATE job SET told = told WHERE id = {one}",  # the same contents, in another place
    "BEGIN; UPDATE job SET told = 'b' WHERE id = {one}; ROLLBACK",
    "BEGIN; INSERT INTO job SELECT n FROM generate_series(4, 9) n; ROLLBACK",
    "DELETE FROM job WHERE id = {one}",
    "DELETE FROM job",
    "INSERT INTO job SELECT n, repeat('c', {one} * 100) FROM generate_series(10, 12) n ON CONFLICT DO NOTHING",
    "INSERT INTO job SELECT n, repeat('c', 1000) FROM generate_series(10, 30) n ON CONFLICT DO NOTHING",
    "TRUNCATE job",
)


@pytest.fixture
def session(scenario_urls: tuple[str, str]) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(scenario_urls[0], autocommit=True) as found:
        found.execute(OPENING)
        yield found
        found.execute("DROP TABLE job")


@pytest.fixture
def snapshot(session: psycopg.Connection[Any], scenario_urls: tuple[str, str]) -> Iterator[PostgresSnapshot]:
    found = PostgresSnapshot(psycopg.connect(scenario_urls[0], autocommit=True))
    yield found
    found.close()


def after(session: psycopg.Connection[Any], snapshot: PostgresSnapshot, *texts: str) -> Any:
    """The places of the opening rows, after these commands and their undoing."""
    for text in texts:
        session.execute(text)
    publish(session.pgconn)
    snapshot.restore()
    return session.execute(PLACES).fetchone()


@pytest.mark.parametrize("vacuum_every", [postgres.VACUUM_EVERY, 3])
def test_the_order_of_the_rows_does_not_depend_on_what_ran_before(
    session: psycopg.Connection[Any],
    snapshot: PostgresSnapshot,
    vacuum_every: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A VACUUM of a table with its rows makes room in front of them: in every 300th schedule new rows came first."""
    monkeypatch.setattr(postgres, "VACUUM_EVERY", vacuum_every)
    chance, seen = random.Random(5), set()
    for number in range(400):
        texts = [chance.choice(WRITES).format(one=chance.randint(1, 3)) for _ in range(chance.randint(1, 3))]
        seen.add(after(session, snapshot, *texts)[0][0])
        session.execute("INSERT INTO job VALUES (0)")  # comes behind them
        assert session.execute(ORDER).fetchone() == ([1, 2, 3, 0],), (number, texts)
    assert len(seen) > 10, "they were in other places"


def test_a_restored_table_is_vacuumed_when_half_of_its_page_is_used(
    session: psycopg.Connection[Any], snapshot: PostgresSnapshot
) -> None:
    places = [after(session, snapshot, "UPDATE job SET told = 'a'")[0][0] for _ in range(100)]
    begun = [number for number, place in enumerate(places) if place == "(0,1)"]
    assert 3 < len(begun) < 20
    assert all(places[number] < "(1,0)" for number in range(100)), "it never needs a second page"


def test_a_page_that_has_to_stay_emptier_is_vacuumed_earlier(
    session: psycopg.Connection[Any], scenario_urls: tuple[str, str]
) -> None:
    session.execute("ALTER TABLE job SET (fillfactor = 10)")
    snapshot = PostgresSnapshot(psycopg.connect(scenario_urls[0], autocommit=True))
    try:
        places = [after(session, snapshot, "UPDATE job SET told = 'a'")[0][0] for _ in range(20)]
        assert places.count("(0,1)") > 5, places
    finally:
        snapshot.close()


def test_a_large_table_without_a_key_that_nobody_has_written_is_not_accused(
    session: psycopg.Connection[Any], scenario_urls: tuple[str, str]
) -> None:
    """PostgreSQL would read it by several processes, so its rows would come in any order."""
    session.execute(
        "CREATE TABLE wide AS SELECT repeat('c', 1000) || n AS told FROM generate_series(1, 12000) n"
    )
    session.execute("ANALYZE wide")
    snapshot = PostgresSnapshot(psycopg.connect(scenario_urls[0], autocommit=True))
    try:
        for _ in range(3):  # each table is compared in the first ones
            snapshot.restore()
    finally:
        snapshot.close()
        session.execute("DROP TABLE wide")


def test_places_are_the_same_once_somebody_asks_for_them(
    session: psycopg.Connection[Any], snapshot: PostgresSnapshot
) -> None:
    snapshot.shows_places = True
    seen = [after(session, snapshot, "UPDATE job SET told = 'a'") for _ in range(5)]
    assert seen == [(["(0,1)", "(0,2)", "(0,3)"],)] * 5


def takes(sql: Any) -> Any:
    """A queue that knows its jobs by their places."""
    with sql.transaction():
        (place,) = sql.execute("SELECT ctid::text FROM job LIMIT 1 FOR UPDATE SKIP LOCKED").fetchone()
        return sql.execute("DELETE FROM job WHERE ctid = %s::tid RETURNING id", [place]).fetchone()


def test_a_queue_by_ctid(session: psycopg.Connection[Any], scenario_urls: tuple[str, str]) -> None:
    found = explore(
        [worker("Ann", takes), worker("Bob", takes)],
        database=scenario_urls[0],
        redis=scenario_urls[1],
        disposable=True,
        invariant=lambda a, b: {a, b} == {(1,), (2,)},
    )
    assert found.kept, str(found)
    assert found.exhausted
