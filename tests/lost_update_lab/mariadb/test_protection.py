"""On a MariaDB: what protects an operation is taken away, by the must-fail control and, one by one, by --mutate."""

from __future__ import annotations

from typing import Any

import pytest
from pymysql import OperationalError

from lost_update_lab.invariants import never_below
from lost_update_lab.scenarios.mutations import CONSTRAINT
from lost_update_lab.scenarios.mutator import ATOMIC, IN_PLACE, LATER, LEVEL, LOCK
from lost_update_lab.scenarios.result import SURVIVES
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial


def pay(number: int, *, sql: Any) -> str:
    """30 of account 1, by its row's lock."""
    return paid(number, "SELECT balance FROM account WHERE id = 1 FOR UPDATE", sql)


def paid(number: int, read: str, sql: Any) -> str:
    sql.autocommit(False)
    with sql.cursor() as cursor:
        cursor.execute(read)
        enough = cursor.fetchone()[0] >= 70
        if enough:
            cursor.execute("UPDATE account SET balance = balance - %s WHERE id = 1", [70])
            cursor.execute("INSERT INTO redemption (customer) VALUES (%s)", [number])
    sql.commit()
    return "paid" if enough else "refused"


def pay_by_name(number: int, *, sql: Any) -> str:
    with sql.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, %s)", ["account", 60])
        answer = paid(number, "SELECT balance FROM account WHERE id = 1", sql)
        cursor.execute("SELECT RELEASE_LOCK(%s)", ["account"])
    return answer


def skew(number: int, *, sql: Any) -> str:
    with sql.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        cursor.execute("START TRANSACTION")
        cursor.execute("SELECT COUNT(*) FROM redemption WHERE code = 'XMAS'")
        free = cursor.fetchone()[0] < 1
        if free:
            cursor.execute("INSERT INTO redemption (code, customer) VALUES ('XMAS', %s)", [number])
    sql.commit()
    return "redeemed" if free else "too late"


def seat(*, sql: Any) -> bool:
    with sql.cursor() as cursor:
        return bool(cursor.execute("UPDATE account SET balance = balance - 1 WHERE id = 1 AND balance > 0"))


def words(result: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in result.mutations:
        found.setdefault(each.mutation.kind, set()).add(each.word)
    return found


@pytest.mark.deep
@pytest.mark.parametrize("operation", [pay, pay_by_name])
def test_the_control_breaks_without_the_lock(trial: Trial, operation: Any) -> None:
    result = trial([(operation, 1), (operation, 2)])
    assert (result.verdict, result.exhausted) == ("kept", True)
    assert not any("without" in note for note in result.notes)


@pytest.mark.deep
def test_the_control_says_which_lock_the_invariant_does_not_need(trial: Trial) -> None:
    """Each operation takes 70, and no two of them come to 140 below -1000."""
    result = trial([(pay_by_name, 1), (pay_by_name, 2)], invariant=never_below("account.balance", -1000))
    assert result.verdict == "inconclusive"
    assert "the invariant cannot tell: it holds without GET_LOCK" in result.cause


@pytest.mark.deep
def test_a_lock_of_rows_is_taken_away_and_moved(trial: Trial) -> None:
    result = trial([(pay, 1), (pay, 2)], mutate=True)
    assert words(result) == {
        LOCK: {"violated"},
        LATER: {"violated"},
        ATOMIC: {"violated"},
        IN_PLACE: {SURVIVES},
    }
    assert "test_protection.py:" in str(result.mutations[0].mutation)


@pytest.mark.deep
def test_a_lock_of_a_name_is_taken_away(trial: Trial) -> None:
    result = trial([(pay_by_name, 1), (pay_by_name, 2)], mutate=True)
    assert words(result)[LOCK] == {"violated"}


@pytest.mark.deep
def test_the_isolation_level_is_taken_away(trial: Trial) -> None:
    result = trial([(skew, 1), (skew, 2)], mutate=True, refusals=[OperationalError])
    assert result.verdict == "kept"
    assert words(result)[LEVEL] == {"violated"}


def once(number: int, *, sql: Any) -> bool:
    with sql.cursor() as cursor:
        return bool(cursor.execute("INSERT IGNORE INTO account VALUES (%s, 7)", [number]))


def reserve(number: int, *, sql: Any) -> bool:
    with sql.cursor() as cursor:
        taken = cursor.execute("INSERT IGNORE INTO voucher VALUES (%s, 1)", [number])
        cursor.execute("INSERT INTO redemption SET code = %s, customer = 1", [number])
        return bool(taken)


@pytest.mark.deep
def test_a_primary_key_is_dropped_and_there_again(trial: Trial) -> None:
    """With the foreign key that refers to it. The redemptions' own numbers are AUTO_INCREMENT: nothing to miss."""
    for _ in range(2):
        result = trial([(reserve, 7), (reserve, 7)], mutate=True)
        assert result.verdict == "kept", str(result)
        found = {each.mutation.what: each.word for each in result.mutations}
        assert found == {"voucher: the primary key": "violated"}


@pytest.mark.deep
def test_constraints_are_dropped_and_there_again(trial: Trial) -> None:
    def opens() -> None:
        shop.open_shop()
        shop.ask("UPDATE account SET balance = id")
        shop.ask(
            "ALTER TABLE account ADD CONSTRAINT enough CHECK (balance >= 0), ADD UNIQUE KEY worth (balance)"
        )
        shop.ask("ALTER TABLE account MODIFY id INT NOT NULL CHECK (id > 0)")

    for _ in range(2):
        result = trial([(once, 8), (once, 9)], setup=opens, mutate=True)
        assert result.verdict == "kept", str(result)
        assert {each.mutation.what: each.word for each in result.mutations} == {
            "account: worth": "violated",
            "account: enough": SURVIVES,
            "account: the primary key": SURVIVES,
            "account: the check of id": SURVIVES,
        }
        assert {each.mutation.kind for each in result.mutations} == {CONSTRAINT}


def test_a_change_in_place_that_is_needed(trial: Trial) -> None:
    result = trial([(seat,), (seat,)], mutate=True)
    assert words(result) == {IN_PLACE: {"violated"}}
