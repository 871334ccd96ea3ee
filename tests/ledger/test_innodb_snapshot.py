"""What a strategy sets on MariaDB for its own transactions, the next one on the connection does not find."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connections

from ledger.books import open_book
from ledger.models import Book
from ledger.posting import Line, Posting, Refused
from ledger.strategies import find

pytestmark = pytest.mark.usefixtures("committed_db", "mariadb_server")
BOTH = pytest.mark.parametrize("slug", ["repeatable-read-innodb", "repeatable-read-innodb-snapshot"])


def book(slug: str) -> Book:
    return open_book(slug, [("A", 100, 0)], store="mariadb", values={"think": [0, 0]})


def asked(sql: str) -> str:
    with connections["mariadb"].cursor() as cursor:
        cursor.execute(sql)
        return str(cursor.fetchone()[-1])


def test_the_server_has_a_folder_of_its_own_for_temporary_tables() -> None:
    """In a shared one, a server that starts removes the tables of another that is being installed."""
    assert Path(asked("SELECT @@tmpdir")).parent == Path(asked("SELECT @@socket")).parent


@BOTH
@pytest.mark.parametrize("amount", [1, -1000])
def test_the_isolation_of_the_next_book_is_that_of_the_server(slug: str, amount: int) -> None:
    try:
        find(slug)(book(slug)).apply(Posting("k", (Line("A", amount),)))
    except Refused:
        assert amount == -1000
    assert asked("SELECT @@SESSION.innodb_snapshot_isolation = @@GLOBAL.innodb_snapshot_isolation") == "1"


@BOTH
def test_an_attempt_costs_what_its_page_says(slug: str) -> None:
    strategy = find(slug)(book(slug))
    before = int(asked("SHOW SESSION STATUS LIKE 'Questions'"))
    strategy.apply(Posting("k", (Line("A", 1),)))
    asking = 1
    cost = int(asked("SHOW SESSION STATUS LIKE 'Questions'")) - before - asking
    assert strategy.round_trips == f"{cost} for each attempt"
