"""explore() on a MariaDB: a user's own operations through PyMySQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from lost_update_lab import explore, worker
from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.invariants import balance_conserved, never_below, unique
from lost_update_lab.under_test.mariadb import parameters
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial
from tests.test_house import ROOT

WALLET = Path(__file__).with_name("django_wallet.py")


def both(call: Any) -> list[Any]:
    return [worker("Ann", call, "XMAS", 1), worker("Bob", call, "XMAS", 2)]


@pytest.mark.deep
def test_the_outcome_of_no_serial_order_is_found(trial: Trial) -> None:
    result = trial(both(shop.redeem))
    assert (result.verdict, result.exhausted) == ("violated", True)
    assert result.schedule
    assert result.schedule.confirmed == 10
    told = str(result)
    assert "shop.py:" in told
    assert "voucher[XMAS].uses: 1 → 0" in told
    assert any("redemption.at" in note for note in result.notes)  # the server's own clock: not compared


@pytest.mark.deep
def test_a_lock_before_the_read_is_kept_and_the_control_breaks(trial: Trial) -> None:
    result = trial(both(shop.redeem_locked), crashes=1, invariant=unique("redemption", "code"))
    assert (result.verdict, result.exhausted) == ("kept", True)
    assert not any("without" in note for note in result.notes)


@pytest.mark.deep
def test_isolation_what_if(trial: Trial) -> None:
    """MariaDB's REPEATABLE READ lets two transactions write skew; SERIALIZABLE ends one of them: a deadlock."""
    workers = [worker("Ann", shop.withdraw, 150, 1), worker("Bob", shop.withdraw, 150, 2)]
    levels = ["read committed", "repeatable read", "serializable"]
    result = trial(workers, isolation=levels, refusals=[pymysql.OperationalError])
    assert [(part.part, part.verdict) for part in result.parts] == [
        ("read-committed", "violated"),
        ("repeatable-read", "violated"),
        ("serializable", "kept"),
    ]


@pytest.mark.deep
def test_ready_made_invariants_and_what_holds_at_each_commit(trial: Trial) -> None:
    workers = [worker("Ann", shop.withdraw, 150, 1), worker("Bob", shop.withdraw, 150, 1)]
    result = trial(workers, always=never_below("account.balance", -100))
    assert result.sentence == "account.balance is below -100"
    money = trial(workers, invariant=balance_conserved("account.balance"))
    assert money.sentence.startswith("the sum of account.balance")


@pytest.mark.deep
def test_a_lease_in_a_row_is_explored_to_the_end(trial: Trial) -> None:
    def opens() -> None:
        shop.open_shop()
        shop.ask("UPDATE voucher SET uses = 0")

    def nothing_lost(ann: object, bob: object) -> bool:
        [(balance,)] = shop.ask("SELECT balance FROM account WHERE id = 1")
        return bool(balance == 100 + 10 * (ann == "ok") + 20 * (bob == "ok"))

    workers = [worker("Ann", shop.leased, 10), worker("Bob", shop.leased, 20)]
    result = trial(workers, pauses=1, setup=opens, invariant=(nothing_lost, "a deposit is lost"))
    assert (result.verdict, result.exhausted) == ("violated", True)
    assert result.hazards == {"contention": "kept", "pause": "violated"}
    assert any("the clock of mariadb is virtual" in note for note in result.notes)


def test_the_database_is_left_as_it_was_found(trial: Trial, address: str) -> None:
    with pymysql.connect(**parameters(address), autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE account (id INT PRIMARY KEY, balance INT)")
        cursor.execute("INSERT INTO account VALUES (1, 100), (2, 100)")

        def changes() -> None:
            shop.ask("INSERT INTO account VALUES (3, 100)")
            shop.ask("CREATE TABLE newer (id INT)")
            shop.ask("CREATE VIEW poor AS SELECT id FROM account WHERE balance < 10")
            shop.ask("CREATE FUNCTION seven() RETURNS INT DETERMINISTIC RETURN 7")

        workers = [worker("Ann", shop.withdraw, 200, 1), worker("Bob", shop.withdraw, 200, 2)]
        assert trial(workers, setup=changes).verdict == "violated"
        cursor.execute("SELECT * FROM account")
        assert cursor.fetchall() == ((1, 100), (2, 100))
        cursor.execute("SHOW TABLES")
        assert cursor.fetchall() == (("account",),)
        cursor.execute("SHOW FUNCTION STATUS WHERE db = DATABASE()")
        assert cursor.fetchall() == ()
        cursor.execute("SHOW DATABASES LIKE 'explorer%'")
        assert cursor.fetchall() == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"setup": lambda: None}, "the setup commits nothing"),
        ({"database": "mysql://nobody@127.0.0.1:1/x_test"}, "no MariaDB answers"),
        ({"isolation": "snapshot"}, "there is no isolation level 'snapshot'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(trial: Trial, change: dict[str, Any], told: str) -> None:
    with pytest.raises(Mistake, match=told):
        trial(both(shop.redeem_locked), **change)


def test_a_database_that_is_no_test_is_not_touched(
    explored_mariadb: MariaDB, scenario_urls: tuple[str, str]
) -> None:
    with pytest.raises(Mistake, match="the database 'lab' is not touched"):
        explore(both(shop.redeem), database=explored_mariadb.url, redis=scenario_urls[1])


@pytest.mark.deep
def test_an_embedded_mariadb_is_started_when_it_is_asked_for(scenario_urls: tuple[str, str]) -> None:
    result = explore(
        both(shop.redeem), database="mariadb", redis=scenario_urls[1], disposable=True, setup=shop.open_shop
    )
    assert (result.verdict, result.exhausted) == ("violated", True)


@pytest.mark.parametrize(
    ("url", "given"),
    [
        # pragma: allowlist nextline secret
        ("mysql://me:p%40ss@db.example:3307/shop", {"host": "db.example", "port": 3307, "password": "p@ss"}),
        ("mysql://me@/shop?unix_socket=/run/m.sock", {"unix_socket": "/run/m.sock", "ssl_disabled": True}),
    ],
)
def test_an_address_is_read(url: str, given: dict[str, Any]) -> None:
    assert parameters(url) == {"user": "me", "database": "shop", **given}


@pytest.mark.deep
def test_a_django_project_on_mariadb(explored_mariadb: MariaDB) -> None:
    with explored_mariadb.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE wallet_test")
        options = {"unix_socket": str(explored_mariadb.socket), "ssl_disabled": True}
        where = {
            "ENGINE": "django.db.backends.mysql",
            "NAME": "wallet_test",
            "USER": "lab",
            "OPTIONS": options,
        }
        try:
            done = subprocess.run(
                [sys.executable, str(WALLET)],
                env={**os.environ, "WALLET_DATABASE": json.dumps(where), "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            cursor.execute("DROP DATABASE wallet_test")
    assert done.stdout.split("\n")[:2] == ["withdraw violated", "withdraw_locked kept"], done.stderr


def test_psycopg_beside_a_mariadb_is_told(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    def operation(sql: Any) -> None:
        with psycopg.connect(scenario_urls[0]) as connection:
            connection.execute("SELECT 1")

    with pytest.raises(Mistake, match="was given a MariaDB"):
        trial([worker("Ann", operation), worker("Bob", operation)])


def charge(invoice: int, by_lock: bool, *, sql: Any) -> str:
    """The account's balance is what was not charged yet. With the lock, only one delivery finds it so."""
    sql.begin()
    with sql.cursor() as cursor:
        cursor.execute(f"SELECT balance FROM account WHERE id = %s{' FOR UPDATE' * by_lock}", [invoice])
        charged = cursor.fetchone()[0] == 0
        if not charged:
            cursor.execute("UPDATE account SET balance = 0 WHERE id = %s", [invoice])
            cursor.execute("INSERT INTO redemption (customer) VALUES (%s)", [invoice])
    sql.commit()
    return "charged already" if charged else "charged"


@pytest.mark.deep
@pytest.mark.parametrize("faults", [{}, {"crashes": 1}])
def test_a_task_that_is_delivered_twice(trial: Trial, faults: dict[str, int]) -> None:
    how: dict[str, Any] = {"retry": "delivered twice", **faults}
    assert trial([worker("task", charge, 1, by_lock=False)], **how).verdict == "violated"
    found = trial([worker("task", charge, 1, by_lock=True)], **how)
    assert (found.verdict, found.exhausted) == ("kept", True), str(found)


@pytest.mark.deep
def test_a_task_that_is_delivered_again_after_a_crash(trial: Trial) -> None:
    def in_two_commits(invoice: int, *, sql: Any) -> None:
        with sql.cursor() as cursor:
            cursor.execute("INSERT INTO redemption (customer) VALUES (%s)", [invoice])
            cursor.execute("UPDATE account SET balance = 0 WHERE id = %s", [invoice])

    how: dict[str, Any] = {"retry": "redelivered", "crashes": 1}
    assert trial([worker("task", in_two_commits, 1)], **how).verdict == "violated"
    assert trial([worker("task", charge, 1, by_lock=True)], **how).kept


@pytest.mark.deep
def test_a_schedule_that_is_left_at_a_deadlock(trial: Trial) -> None:
    def both_rows(one: int, other: int, *, sql: Any) -> None:
        sql.begin()
        with sql.cursor() as cursor:
            for each in (one, other):
                cursor.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", [each])
        sql.commit()

    found = trial([worker("Ann", both_rows, 1, 2), worker("Bob", both_rows, 2, 1)], deadlocks=False)
    assert found.kept
    assert "were left at a deadlock" in found.bounds


@pytest.mark.deep
def test_a_setup_asks_for_a_connection(trial: Trial) -> None:
    def opens(sql: Any) -> None:
        with sql.cursor() as cursor:
            cursor.execute("CREATE TABLE stock (seats int)")
            cursor.execute("INSERT INTO stock VALUES (2)")

    def sells(sql: Any) -> None:
        with sql.cursor() as cursor:
            cursor.execute("SELECT seats FROM stock")
            (seats,) = cursor.fetchone()
            cursor.execute("UPDATE stock SET seats = %s", [seats - 1])

    assert trial([sells, sells], setup=opens).verdict == "violated"
