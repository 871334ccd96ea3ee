"""Changes in place are taken apart, in whatever form they are sent; what cannot be taken apart is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.in_place import APART, IN_COROUTINE, ROWS, in_place
from lost_update_lab.scenarios.mutator import IN_PLACE
from lost_update_lab.scenarios.result import NOT_TRIED

Trial = Callable[..., Result]


def table() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int, m int DEFAULT 0, at timestamptz)")
        connection.execute("INSERT INTO t VALUES (1, 0)")


def sent(query: str, params: Any, sql: Any) -> None:
    sql.execute(query, params)


FORMS = {
    "function": "UPDATE t SET n = coalesce(n, 0) + 1 WHERE id = 1",
    "two columns": "UPDATE t SET n = n + 1, at = now() WHERE id = 1",
    "no condition": "UPDATE t SET n = n + 1",
    "upsert": "INSERT INTO t (id, n) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + EXCLUDED.n",
    "plain": "UPDATE t SET n = n + 1 WHERE id = 1",
    "greatest": "UPDATE t SET n = greatest(n + 1, 0) WHERE id = 1",
    "another column first": "UPDATE t SET m = 5, n = n + 1 WHERE id = 1",
    "alias": "UPDATE t AS x SET n = x.n + 1 WHERE id = 1",
    "qualified": "UPDATE t SET n = t.n + 1 WHERE t.id = 1",
    "row": "UPDATE t SET (n, m) = (n + 1, 7) WHERE id = 1",
    "returning": "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n",
    "schema": "UPDATE public.t SET n = n + 1 WHERE id = 1",
    "from": "UPDATE t SET n = t.n + o.one FROM (SELECT 1 AS one) o WHERE id = 1",
}


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_needed(trial: Trial, form: str) -> None:
    result = trial([(sent, FORMS[form], None)] * 2, setup=table, mutate=True)
    (tried,) = [each for each in result.mutations if each.mutation.kind == IN_PLACE]
    assert (result.verdict, tried.word) == ("kept", "violated")


def test_what_cannot_be_taken_apart_is_said(trial: Trial) -> None:
    query = "WITH x AS (UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n) SELECT n FROM x"
    result = trial([(sent, query, None)] * 2, setup=table, mutate=True)
    (tried,) = result.mutations
    assert (tried.mutation.kind, tried.word, tried.told) == (IN_PLACE, NOT_TRIED, APART)
    assert f"  Mutations: none tried\n    {APART}  (tests/" in str(result)


def test_several_rows_are_not_taken_apart(trial: Trial) -> None:
    def tables() -> None:
        table()
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute("INSERT INTO t VALUES (2, 0)")

    result = trial([(sent, "UPDATE t SET n = n + 1", None)] * 2, setup=tables, mutate=True)
    assert [(each.word, each.told) for each in result.mutations] == [(NOT_TRIED, ROWS)]


async def by_coroutine() -> None:
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as sql:
        await sql.execute("UPDATE t SET n = n + 1 WHERE id = 1")


def test_a_coroutine_is_said(trial: Trial) -> None:
    result = trial([by_coroutine, by_coroutine], setup=table, mutate=True)
    assert [(each.word, each.told) for each in result.mutations] == [(NOT_TRIED, IN_COROUTINE)]


@pytest.mark.parametrize(
    ("text", "params", "read", "write"),
    [
        (
            'UPDATE "s" SET "at" = %s, "left" = ("s"."left" - %s) WHERE "id" = %s RETURNING "left"',
            ("now", 2, 7),
            ('SELECT ("s"."left" - %s) FROM "s" WHERE "id" = %s', [2, 7]),
            ('UPDATE "s" SET "at" = %s, "left" = %s WHERE "id" = %s RETURNING "left"', ["now", 5, 7]),
        ),
        (
            "UPDATE `s` SET `left` = (`s`.`left` - %s) ORDER BY id LIMIT 1",
            [2],
            ("SELECT (`s`.`left` - %s) FROM `s` ORDER BY id LIMIT 1", [2]),
            ("UPDATE `s` SET `left` = %s ORDER BY id LIMIT 1", [5]),
        ),
        (
            "UPDATE s SET n=(s.n + %(a)s), at=%(b)s WHERE s.id = %(c)s",
            {"a": 1, "b": 2, "c": 3},
            ("SELECT (s.n + %(a)s) FROM s WHERE s.id = %(c)s", {"a": 1, "b": 2, "c": 3}),
            (
                "UPDATE s SET n=%(lost_update_lab_read)s, at=%(b)s WHERE s.id = %(c)s",
                {"a": 1, "b": 2, "c": 3, "lost_update_lab_read": 5},
            ),
        ),
        (
            "UPDATE s SET n = n + 1 WHERE a LIKE 'x, WHERE %'",
            None,
            ("SELECT n + 1 FROM s WHERE a LIKE 'x, WHERE %'", None),
            ("UPDATE s SET n = %s WHERE a LIKE 'x, WHERE %%'", [5]),
        ),
        (
            "UPDATE s SET n = n + %s WHERE a LIKE 'x%%'",
            [1],
            ("SELECT n + %s FROM s WHERE a LIKE 'x%%'", [1]),
            ("UPDATE s SET n = %s WHERE a LIKE 'x%%'", [5]),
        ),
        (
            "INSERT INTO s (k, n) VALUES (%s, %s) ON CONFLICT (k) DO UPDATE SET a = %s, n = s.n + EXCLUDED.n",
            ["x", 1, 9],
            ("SELECT s.n + (%s) FROM s WHERE s.k = (%s)", [1, "x"]),
            (
                "INSERT INTO s (k, n) VALUES (%s, %s) ON CONFLICT (k) DO UPDATE SET a = %s, n = %s",
                ["x", 1, 9, 5],
            ),
        ),
    ],
)
def test_a_read_and_a_write(text: str, params: Any, read: Any, write: Any) -> None:
    found = in_place(text, params)
    assert found
    assert found[0].reading() == read
    assert found[0].writing(5) == write


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("UPDATE s SET a = a + 1, b = s.b || ', c = c', d = 4", ["a", "b"]),
        ("UPDATE s SET (a, b) = (b, b + 1)", ["b"]),
        ("UPDATE s SET a = 1 WHERE a = 2", []),
        ("UPDATE s SET a = o.a FROM o", []),
        ("UPDATE s SET a = a(1), b = 'b'", []),
        ("UPDATE s SET a = %s WHERE id = 1", []),
        ("INSERT INTO s (k, n) VALUES (1, 2), (3, 4) ON CONFLICT (k) DO UPDATE SET n = EXCLUDED.n", []),
        ("INSERT INTO s (k, n) VALUES (1, 2) ON DUPLICATE KEY UPDATE n = VALUES(n)", []),
        ("INSERT INTO s (k, n) VALUES (1, 2) ON DUPLICATE KEY UPDATE n = n + 1", None),
        ("INSERT INTO s (k, n) VALUES (1, 2), (3, 4) ON CONFLICT (k) DO UPDATE SET n = s.n + 1", None),
        ("MERGE INTO s USING o ON s.k = o.k WHEN MATCHED THEN UPDATE SET n = s.n + 1", None),
        ("UPDATE s, o SET s.n = s.n + 1 WHERE s.k = o.k", None),
        ("SELECT a FROM s WHERE a = 'UPDATE s SET a = a + 1'", []),
    ],
)
def test_what_is_changed_in_place(text: str, columns: list[str] | None) -> None:
    found = in_place(text, None)
    assert (found if found is None else [each.column for each in found]) == columns
