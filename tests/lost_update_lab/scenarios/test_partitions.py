"""A row that an UPDATE moves to another partition: whoever meets it while that is not committed hears an error
(SerializationFailure, under READ COMMITTED, too). One command is a transaction by itself, and others come before its
commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker

Trial = Callable[..., Result]
ADD = "UPDATE paid SET amount = amount + 10 WHERE id = 1"
TAKE = "DELETE FROM paid WHERE id = 1"
MOVE = "UPDATE paid SET state = 'done', amount = amount + 1 WHERE id = 1"


def opened(parts: str) -> Callable[[], None]:
    def setup() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
            sql.execute(
                f"CREATE TABLE paid (id int, state text, amount int, PRIMARY KEY (id, state)) {parts}"
            )
            if parts:
                sql.execute("CREATE TABLE paid_open PARTITION OF paid FOR VALUES IN ('open')")
                sql.execute("CREATE TABLE paid_done PARTITION OF paid FOR VALUES IN ('done')")
            sql.execute("INSERT INTO paid VALUES (1, 'open', 0)")

    return setup


def sends(text: str) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
        sql.execute(text)


def amount() -> Any:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        return (sql.execute("SELECT amount FROM paid").fetchone() or [None])[0]


@pytest.mark.parametrize(("parts", "verdict"), [("PARTITION BY LIST (state)", "violated"), ("", "kept")])
def test_an_update_meets_the_row_under_way(trial: Trial, parts: str, verdict: str) -> None:
    workers = [worker("Ann", sends, MOVE), worker("Bob", sends, ADD)]
    found = trial(workers, setup=opened(parts), invariant=(lambda: amount() == 11, "one of the two is lost"))
    assert found.verdict == verdict, str(found)


@pytest.mark.deep
def test_so_does_a_delete(trial: Trial) -> None:
    workers = [worker("Ann", sends, MOVE), worker("Bob", sends, TAKE)]
    gone = (lambda: amount() is None, "the row is still there")
    assert trial(workers, setup=opened("PARTITION BY LIST (state)"), invariant=gone).verdict == "violated"
