"""What a session remembers is gone when the next schedule begins, whichever command has set it: a worker is a process
that has just connected. One that did its work only once in a session was `kept`, from its second schedule on."""

from __future__ import annotations

from typing import Any

import pytest

from lost_update_lab import worker
from lost_update_lab.servers.mariadb.way import lasts_beyond, remembers, remembers_inside
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial


def opened() -> None:
    shop.open_shop()
    shop.ask("DROP FUNCTION IF EXISTS marks")
    shop.ask("CREATE FUNCTION marks() RETURNS INT BEGIN SET @done = 1; RETURN 1; END")
    shop.ask("DROP FUNCTION IF EXISTS marked")
    shop.ask("CREATE FUNCTION marked() RETURNS INT RETURN COALESCE(@done, 0)")


def asked(sql: Any, text: str, *values: Any) -> Any:
    with sql.cursor() as cursor:
        cursor.execute(text, values)
        return (cursor.fetchone() or [None])[0] if cursor.description else None


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(
    ("asks", "sets"),
    [
        ("SELECT @done", "SET @done = 1"),
        ("SELECT @done", "SELECT 1 INTO @done"),
        ("SELECT @done", "SELECT @done := 1"),
        ("SELECT @done", "/* once */ SELECT marks()"),
        ("SELECT marked()", "SELECT marks()"),
        ("SELECT LAST_INSERT_ID()", "SELECT LAST_INSERT_ID(77)"),
        ("SELECT n FROM once", "INSERT INTO once VALUES (1)"),
    ],
)
def test_each_schedule_begins_with_a_session_that_remembers_nothing(
    trial: Trial, asks: str, sets: str
) -> None:
    def takes(amount: int, *, sql: Any) -> str:
        """A lost update; once in a session."""
        if "once" in asks:
            asked(sql, "/* here */ CREATE TEMPORARY TABLE IF NOT EXISTS once (n INT)")
        if asked(sql, asks):
            return "before"
        asked(sql, sets)
        balance = asked(sql, "SELECT balance FROM account WHERE id = 1")
        asked(sql, "UPDATE account SET balance = %s WHERE id = 1", balance - amount)
        return "done"

    def adds_up() -> bool:
        return shop.ask("SELECT balance FROM account WHERE id = 1")[0][0] == 70

    workers = [worker("Ann", takes, 10), worker("Bob", takes, 20)]
    assert trial(workers, setup=opened, invariant=adds_up).verdict == "violated"


@pytest.mark.parametrize(
    ("text", "lasts", "asks"),
    [
        ("-- now\nSET @done = 1", True, True),
        ("SELECT id INTO @done FROM account", True, True),
        ("SET SESSION autocommit = 0", False, False),
        ("UPDATE account SET balance = 1", False, False),
        ("SELECT 'ann@shop'", False, False),
        ("SELECT @done", False, True),
    ],
)
def test_which_commands_a_session_remembers(text: str, lasts: bool, asks: bool) -> None:
    assert (lasts_beyond(text), remembers(text)) == (lasts, asks)


def test_a_routine_may_have_variables_of_its_own() -> None:
    assert not remembers_inside("BEGIN DECLARE v INT; SET v = 1; RETURN v; END")
    assert remembers_inside("BEGIN CREATE TEMPORARY TABLE once (n INT); RETURN 1; END")
