"""Tables that a command writes without naming them, by a trigger, a foreign key or a function, are put back, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from lost_update_lab import worker
from lost_update_lab.snapshot.mariadb_behind import Behind
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

TABLES = """
DROP TABLE IF EXISTS payment, log, total, account;
DROP FUNCTION IF EXISTS logged;
CREATE TABLE account (id INT PRIMARY KEY, balance INT);
CREATE TABLE total (id INT PRIMARY KEY, held INT);
CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, told INT);
CREATE TABLE payment (id INT PRIMARY KEY, due INT REFERENCES account (id) ON DELETE CASCADE);
INSERT INTO account VALUES (1, 100), (2, 100);
INSERT INTO total VALUES (1, 200);
INSERT INTO payment VALUES (1, 1)
"""
TRIGGER = "CREATE TRIGGER adds AFTER UPDATE ON account FOR EACH ROW "
IN_ONE = TRIGGER + "UPDATE total SET held = held + NEW.balance - OLD.balance"
IN_TWO = f"""{TRIGGER} BEGIN
    DECLARE before_ INT;
    SELECT held INTO before_ FROM total;
    UPDATE total SET held = before_ + NEW.balance - OLD.balance;
END"""
LOGS = "CREATE FUNCTION logged(n INT) RETURNS INT BEGIN INSERT INTO log (told) VALUES (n); RETURN n; END"


def opening(more: str) -> None:
    for statement in TABLES.split(";"):
        shop.ask(statement)
    shop.ask(more)


def withdraw(account: int) -> None:
    shop.ask("UPDATE account SET balance = balance - 10 WHERE id = %s", account)


def withdraw_and_log(account: int) -> None:
    shop.ask("UPDATE account SET balance = balance - logged(10) WHERE id = %s", account)


def pays_out_once(account: int) -> bool:
    """The payment goes with its account."""
    if not shop.ask("SELECT 1 FROM payment WHERE due = %s", account):
        return False
    shop.ask("DELETE FROM account WHERE id = %s", account)
    return True


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("more", "operation", "accounts", "verdict"),
    [
        (IN_TWO, withdraw, (1, 2), "violated"),
        (IN_ONE, withdraw, (1, 2), "kept"),
        ("DO 0", pays_out_once, (1, 1), "violated"),
        (LOGS, withdraw_and_log, (1, 1), "kept"),
    ],
    ids=["two steps", "one step", "cascade", "function"],
)
def test_what_is_written_behind_a_command_is_put_back(
    trial: Trial, more: str, operation: Callable[[int], object], accounts: tuple[int, int], verdict: str
) -> None:
    """It kept what each schedule had written: a trigger that loses money was kept."""
    workers = [worker(who, operation, account) for who, account in zip(("Ann", "Bob"), accounts, strict=True)]
    assert trial(workers, setup=partial(opening, more), control=False).verdict == verdict


def test_what_is_behind_a_command_is_followed() -> None:
    texts = {"view": "select 1 from `account`", "account": "UPDATE total SET x = f()", "f": "INSERT log"}
    behind = Behind(lambda query: tuple(texts.items()) if "view_definition" in query else (("log", "kid"),))
    assert {"account", "total", "log", "kid"} <= set(behind.reached("SELECT * FROM VIEW") or ())
    assert "total" not in (behind.reached("SELECT * FROM log") or ())
    texts["f"] = "EXECUTE IMMEDIATE CONCAT('DROP TABLE ', name)"
    computed = Behind(lambda query: tuple(texts.items()) if "view_definition" in query else ())
    assert computed.reached("SELECT * FROM view") is None
