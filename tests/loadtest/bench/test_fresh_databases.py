"""Each turn of a bench has a database of its own, and none is left."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from uuid import uuid4

import pytest
from django.db import connection, connections

from ledger.models import Book
from loadtest.bench.strategies.callers import fresh_book
from loadtest.bench.strategies.databases import NOT_ALLOWED, fresh_databases

pytestmark = pytest.mark.usefixtures("committed_db")


def one(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


@pytest.fixture(autouse=True)
def _none_is_left(committed_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of those that this test makes: another process of tests may be at its own, on the same server."""
    mine, here = uuid4().hex, connection.settings_dict["NAME"]
    monkeypatch.setattr("loadtest.bench.strategies.databases.token_hex", lambda _: mine)
    yield
    assert connection.settings_dict["NAME"] == here
    assert one("SELECT current_database()") == here
    assert one(f"SELECT count(*) FROM pg_database WHERE datname LIKE '%{mine}%'") == 0


@pytest.mark.deep
def test_a_turn_meets_nothing_of_those_before(committed_db: None) -> None:
    here = fresh_book("no-lock", 1)
    with fresh_databases(pytest.fail) as turn:
        for _ in range(2):
            with turn():
                assert not Book.objects.exists()
                fresh_book("no-lock", 1)
        assert Book.objects.filter(pk=here.pk).exists(), "between two turns: the database of before"


@pytest.mark.deep
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


def test_without_the_right_to_create_databases_all_turns_share_the_existing_one(committed_db: None) -> None:
    notes: list[str] = []
    role = f"lab_{uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {role} LOGIN")
    user = connection.settings_dict["USER"]
    connection.close()
    connection.settings_dict["USER"] = role
    try:
        with fresh_databases(notes.append) as turn, turn():
            assert one("SELECT current_user") == role
    finally:
        connection.close()
        connection.settings_dict["USER"] = user
        with connection.cursor() as cursor:
            cursor.execute(f"DROP ROLE {role}")
    assert notes == [NOT_ALLOWED]
