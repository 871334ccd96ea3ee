"""Each turn of a bench has a database of its own, and none is left."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest
from django.db import connection, connections

from ledger.models import Book
from loadtest.bench.callers import fresh_book
from loadtest.bench.fresh_databases import NOT_ALLOWED, fresh_databases

pytestmark = pytest.mark.usefixtures("committed_db")


def one(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def ours() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE 'lab_bench_%'")
        return {name for (name,) in cursor.fetchall()}


@pytest.fixture(autouse=True)
def _none_is_left(committed_db: None) -> Iterator[None]:
    before, here = ours(), connection.settings_dict["NAME"]
    yield
    assert connection.settings_dict["NAME"] == here
    assert one("SELECT current_database()") == here
    assert ours() <= before


def test_a_turn_meets_nothing_of_those_before(committed_db: None) -> None:
    here = fresh_book("no-lock", 1)
    with fresh_databases(pytest.fail) as turn:
        for _ in range(2):
            with turn():
                assert not Book.objects.exists()
                fresh_book("no-lock", 1)
        assert Book.objects.filter(pk=here.pk).exists(), "between two turns: the database of before"


def test_its_threads_are_in_the_same_one() -> None:
    seen: list[object] = []

    def look() -> None:
        seen.append(one("SELECT current_database()"))
        connections.close_all()

    with fresh_databases(pytest.fail) as turn, turn():
        thread = Thread(target=look)
        thread.start()
        thread.join()
        assert seen == [one("SELECT current_database()")]
        assert str(seen[0]).startswith("lab_bench_")


def test_none_is_left_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), fresh_databases(pytest.fail) as turn, turn():
        raise ZeroDivisionError


def test_who_may_create_none_has_all_turns_in_the_one_that_is_there(committed_db: None) -> None:
    notes: list[str] = []
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE lab_may_not LOGIN")
        cursor.execute("GRANT pg_read_all_data, pg_write_all_data TO lab_may_not")
    user = connection.settings_dict["USER"]
    connection.close()
    connection.settings_dict["USER"] = "lab_may_not"
    try:
        with fresh_databases(notes.append) as turn, turn():
            assert one("SELECT current_user") == "lab_may_not"
    finally:
        connection.close()
        connection.settings_dict["USER"] = user
        with connection.cursor() as cursor:
            cursor.execute("DROP ROLE lab_may_not")
    assert notes == [NOT_ALLOWED]
