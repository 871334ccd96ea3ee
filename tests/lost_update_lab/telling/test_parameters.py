"""Values and their places: what a value is made of moves no other value, and none is lost."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.postgres.describe import describe
from lost_update_lab.scenarios.wording import readable

INSERT = 'INSERT INTO "r" ("who", "note", "n") VALUES (%s, %s, %s)'


def told(query: str, params: Any, kind: str = driver.EXECUTE) -> str:
    op = describe(kind, {"query": query, "params": params}, idle=False)
    return readable(op.text, "")[0]


@pytest.mark.parametrize(
    "value", ["a note (VIP), really", "a)", "a, b", "100 %s", "$1", 'a "quoted" one', "x ← y", "a;\x1fb"]
)
def test_no_value_moves_or_cuts_another(value: str) -> None:
    shown = value.replace("\x1f", " ")
    assert told(INSERT, ["Bob", value, 1]) == f"INSERT INTO r (who Bob, note {shown}, n 1)"
    assert (
        told("UPDATE r SET note = %s WHERE n = %s", [value, 1]) == f"UPDATE r SET note = {shown} WHERE n = 1"
    )
    assert told("SELECT n FROM r WHERE note = %s AND n = %s", [value, 1]) == (
        f"SELECT n FROM r WHERE note = {shown} AND n = 1"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["x", "y"], "['x', 'y']"),
        ({"a": 1, "b": 2}, "{'a': 1, 'b': 2}"),
        (Jsonb({"a": 1, "b": 2}), "Jsonb({'a': 1, 'b': 2})"),
        (b"plain, text", "plain, text"),
        pytest.param(memoryview(b"plain"), "plain", id="memoryview"),  # its own name is an address
        (b"\xff\x00", "\\xff00"),
        (None, "None"),
        ("", ""),
    ],
    ids=str,
)
def test_a_value_of_any_kind(value: Any, shown: str) -> None:
    assert told("UPDATE r SET v = %s, n = %s", [value, 1]) == f"UPDATE r SET v = {shown}, n = 1"
    assert told("UPDATE r SET n = %s", [value]) == f"UPDATE r SET n = {shown}".rstrip()


def test_a_place_by_name_takes_its_value_as_often_as_it_is_there() -> None:
    query = "UPDATE r SET note = %(note)s WHERE n = %(n)s OR m = %(n)s"
    assert (
        told(query, {"n": 1, "note": "a, b", "unused": 3}) == "UPDATE r SET note = a, b WHERE n = 1 OR m = 1"
    )


def test_a_place_by_number_takes_its_value() -> None:
    query = "UPDATE r SET a = $2, b = $1 WHERE c = $2"
    assert told(query, [b"$2, ", b"x"], driver.STATEMENT) == "UPDATE r SET a = x, b = $2, WHERE c = x"


def test_a_percent_sign_is_no_place() -> None:
    assert told("SELECT n FROM r WHERE a LIKE 'x%%s' AND b = %s", [5]).endswith("LIKE 'x%%s' AND b = 5")


def test_brackets_and_commas_of_the_text_divide_no_value() -> None:
    text = "INSERT INTO r (a, b) VALUES (COALESCE(%s, %s), 'x, (y)') RETURNING id"
    assert told(text, [1, 2]) == "INSERT INTO r (a COALESCE(1, 2), b 'x, (y)')"
    assert readable("INSERT INTO r (a, b) VALUES ('it\\'s), \"so\"', 1)", "")[0] == (
        "INSERT INTO r (a 'it\\'s), \"so\"', b 1)"
    )


def test_the_arrow_of_a_command_without_places_is_its_own() -> None:
    assert readable("SET key a ← b, c", "OK") == ("SET key a ← b, c", "OK")


def test_sql_composed_by_psycopg() -> None:
    query = psycopg.sql.SQL("UPDATE {} SET a = %s").format(psycopg.sql.Identifier("r"))
    assert told(query, ["a, b"]) == "UPDATE r SET a = a, b"  # type: ignore[arg-type]
