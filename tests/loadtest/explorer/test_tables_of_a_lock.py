"""A third-party lock that keeps a row in a table of its own: the row is put back, and is a part of each state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from lost_update_lab.model.system import UNBROKEN

TABLE = "CREATE TABLE IF NOT EXISTS its_own (name text PRIMARY KEY, until timestamptz)"
INSERT = "INSERT INTO its_own VALUES (%s, now() + interval '10 s') ON CONFLICT (name) DO "
OVER = "UPDATE SET until = excluded.until WHERE its_own.until < now()"
DELETE = "DELETE FROM its_own WHERE name = %s"


@contextmanager
def row(name: str, sql: str, conflict: str = "NOTHING") -> Iterator[None]:
    with connections[sql].cursor() as cursor:
        cursor.execute(TABLE)
        cursor.execute(INSERT + conflict, [name])
        while not cursor.rowcount:
            time.sleep(1)
            cursor.execute(INSERT + conflict, [name])
        yield
        cursor.execute(DELETE, [name])


@contextmanager
def row_with_a_lease(name: str, sql: str) -> Iterator[None]:
    with row(name, sql, OVER):
        yield


@contextmanager
def row_in_another_form(name: str, sql: str) -> Iterator[None]:
    """A table of the same name, with other columns: the one of the lock before is gone."""
    with connections[sql].cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS its_own (name text PRIMARY KEY, taken bool)")
        cursor.execute("INSERT INTO its_own VALUES (%s, false) ON CONFLICT DO NOTHING", [name])
        while not _free(cursor, name):
            time.sleep(1)
        cursor.execute("UPDATE its_own SET taken = true WHERE name = %s", [name])
        yield
        cursor.execute("UPDATE its_own SET taken = false WHERE name = %s", [name])


@contextmanager
def row_with_a_late_table(name: str, sql: str) -> Iterator[None]:
    """A worker that has to wait signs in a table of its own, and the third one goes in without the lock."""
    with connections[sql].cursor() as cursor:
        cursor.execute(TABLE)
        cursor.execute(INSERT + "NOTHING", [name])
        if not cursor.rowcount:
            cursor.execute("CREATE TABLE IF NOT EXISTS waits (name text)")
            cursor.execute("INSERT INTO waits VALUES (%s)", [name])
            cursor.execute("SELECT count(*) FROM waits")
            while cursor.fetchone()[0] < 3:
                time.sleep(1)
                cursor.execute(INSERT + "NOTHING", [name])
                if cursor.rowcount:
                    break
                cursor.execute("SELECT count(*) FROM waits")
        yield
        cursor.execute(DELETE, [name])


@contextmanager
def counted(name: str, sql: str) -> Iterator[None]:
    """Who comes as the second one is refused, or both are. But the first one may have counted before the second one
    comes, and write what it has counted when that one has written, too: then each of them reads that it is alone."""
    with connections[sql].cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS guest (name text)")
        cursor.execute("CREATE TABLE IF NOT EXISTS guests (one int PRIMARY KEY, n int)")
        cursor.execute("INSERT INTO guests VALUES (1, 0) ON CONFLICT DO NOTHING")
        cursor.execute("INSERT INTO guest VALUES (%s)", [name])
        cursor.execute("UPDATE guests SET n = (SELECT count(*) FROM guest)")
        cursor.execute("SELECT n FROM guests")
        if cursor.fetchone()[0] > 1:
            raise TimeoutError
        yield


@contextmanager
def grants_a_right(name: str, sql: str) -> Iterator[None]:
    """What it grants stays for the schedules after this one."""
    with row(name, sql), connections[sql].cursor() as cursor:
        cursor.execute("DO $$ BEGIN EXECUTE 'GRANT SELECT ON its_own TO PUBLIC'; END $$")
        yield


@contextmanager
def row_with_a_late_index(name: str, sql: str) -> Iterator[None]:
    """It looks, and then inserts. One that has waited makes the index without which two do so at once."""
    with connections[sql].cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS its_own (name text)")
        waited = False
        while True:
            cursor.execute("SELECT FROM its_own WHERE name = %s", [name])
            if not cursor.rowcount:
                if waited:
                    cursor.execute("CREATE UNIQUE INDEX IF NOT EXISTS only_one ON its_own (name)")
                cursor.execute("INSERT INTO its_own VALUES (%s) ON CONFLICT DO NOTHING", [name])
                if cursor.rowcount:
                    break
            waited = True
            time.sleep(1)
        yield
        cursor.execute(DELETE, [name])


def _free(cursor: Any, name: str) -> bool:
    cursor.execute("SELECT 1 FROM its_own WHERE name = %s AND NOT taken", [name])
    return bool(cursor.fetchone())


@pytest.mark.deep(short=False)
@pytest.mark.timeout(1800)  # a search beside five others: the general limit ends the whole session
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(
    ("lock", "faults", "expected"),
    [
        (row, 0, {"contention": UNBROKEN}),
        (row_in_another_form, 0, {"contention": "lost"}),
        (row_with_a_lease, 1, {"contention": UNBROKEN, "crash-holding": UNBROKEN, "pause": "lost"}),
        (row_with_a_late_table, 0, {"contention": UNBROKEN}),
        (counted, 0, {"contention": "lost"}),
    ],
    ids=["row", "another_form", "lease", "late_table", "counted"],
)
def test_a_row_in_a_table_of_its_own_is_a_lock(lock: Any, faults: int, expected: dict[str, str]) -> None:
    """`row` was stalled without any fault: the row of the schedule before was still there. The names of such schedules
    let a worker of `row_with_a_late_table` in.
    """
    # the lane has met a table of this name before
    before = Job(strategy=f"{__name__}:{row.__name__}", faults=0)
    job = Job(strategy=f"{__name__}:{lock.__name__}", faults=faults)
    with Lanes(1) as lanes:
        found = [answer["result"] for _, answer in lanes.explore([before, job])][-1]
    assert found.exhausted
    words = {str(of): str(word) for of, (word, _) in found.came_to.items()}
    assert {of: words[of] for of in expected} == expected


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_what_it_makes_beside_tables_is_refused() -> None:
    """No text shows it. It was kept."""
    with Lanes(1) as lanes:
        ((_, answer),) = lanes.explore([Job(strategy=f"{__name__}:{grants_a_right.__name__}", faults=0)])
    assert "puts rows back, and no tables" in answer["error"]
    assert "in a migration" in answer["remedy"]


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_an_index_that_is_made_in_the_middle_of_the_search_is_said() -> None:
    """The schedules after it had the index, and the search was exhausted all the same."""
    with Lanes(1) as lanes:
        job = Job(strategy=f"{__name__}:{row_with_a_late_index.__name__}", faults=0)
        ((_, answer),) = lanes.explore([job])
    found = answer["result"]
    assert not found.exhausted
    assert "an index, in the middle of the search, which is not put back: only_one" in found.cause
