"""PyMySQL's read_timeout: the client hears an error, and the server goes on with what it was sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from lost_update_lab import worker
from lost_update_lab.gates.mariadb.gate import READS_ON
from lost_update_lab.under_test.mariadb import parameters
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

ROW, NAME = "SELECT code FROM voucher FOR UPDATE", "SELECT GET_LOCK('a', 86400)"
BALANCE = "SELECT balance FROM account WHERE id = 1"
ADD = "UPDATE account SET balance = balance + 10 WHERE id = 1"
TIMED_OUT = "OperationalError: 2013, Lost connection to MySQL server during query (timed out)"


def waits(lock: str, reads: int) -> str:
    """It works for 5 s, with the lock. One that cannot get it in time goes in without it."""
    with shop.connect(read_timeout=reads, autocommit=lock == NAME) as held, held.cursor() as asks:
        try:
            asks.execute(lock)
        except pymysql.OperationalError:
            assert not held.open
        with shop.connect(autocommit=True) as sql, sql.cursor() as cursor:
            cursor.execute(BALANCE)
            balance = cursor.fetchone()[0]
            time.sleep(5)
            cursor.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + 10])
    return "posted"


at_least_what_was_posted = (
    lambda ann, bob: shop.ask(BALANCE)[0][0] >= 100 + 10 * [ann, bob].count("posted"),
    "a posting is lost",
)
both_posted = (lambda: shop.ask(BALANCE)[0][0] == 120, "a posting is lost, or came twice")


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(("reads", "word"), [(2, "violated"), (30, "kept")])
@pytest.mark.parametrize("lock", [ROW, NAME])
def test_a_waiter_that_reads_no_longer_goes_in(trial: Trial, lock: str, reads: int, word: str) -> None:
    result = trial([worker(name, waits, lock, reads) for name in ("Ann", "Bob")], invariant=both_posted)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
    assert (TIMED_OUT in str(result)) is (word == "violated")


def holds(*, sql: Any) -> None:
    """For 5 s, in a transaction."""
    with sql.cursor() as cursor:
        sql.begin()
        cursor.execute(ADD)
        time.sleep(5)
        sql.commit()


def retried(*, commits: bool) -> Callable[[], None]:
    """It asks again, over another connection, until it hears an answer. In a transaction if it `commits`."""

    def post() -> None:
        while True:
            try:
                with shop.connect(read_timeout=2, autocommit=not commits) as sql, sql.cursor() as cursor:
                    cursor.execute(ADD)
                    if commits:
                        sql.commit()
                    return
            except pymysql.OperationalError:
                pass

    return post


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("commits", "word"), [(False, "violated"), (True, "kept")])
def test_what_was_sent_is_executed_when_nobody_hears(trial: Trial, commits: bool, word: str) -> None:
    """By itself, it is committed once it has the row: it came twice. In a transaction it is rolled back."""
    workers = [worker("Ann", holds), worker("Bob", retried(commits=commits))]
    result = trial(workers, invariant=both_posted, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)


@pytest.fixture
def made_before(address: str) -> Iterator[list[Any]]:
    """Connections that last from schedule to schedule."""
    made = [pymysql.connect(**parameters(address), read_timeout=2) for _ in range(2)]
    yield made
    for each in made:
        assert each.open
        each.close()


def waits_by(sql: Any) -> str:
    """It does nothing without the row."""
    try:
        with sql.cursor() as cursor:
            cursor.execute(ROW)
            cursor.execute(BALANCE)
            balance = cursor.fetchone()[0]
            time.sleep(5)
            cursor.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + 10])
        sql.commit()
    except pymysql.OperationalError:
        return "refused"
    return "posted"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("hazards", [{}, {"crashes": 1}, {"lost_replies": 1}, {"pauses": 1}], ids=str)
def test_its_connection_is_there_again_in_the_next_schedule(
    trial: Trial, made_before: list[Any], hazards: dict[str, int]
) -> None:
    workers = [worker("Ann", waits_by, made_before[0]), worker("Bob", waits_by, made_before[1])]
    result = trial(workers, invariant=at_least_what_was_posted, control=False, **hazards)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


def connects_again() -> str:
    """Each try leaves a session on the server that waits."""
    while True:
        try:
            with shop.connect(read_timeout=2) as sql, sql.cursor() as cursor:
                cursor.execute(ROW)
                cursor.execute(BALANCE)
                cursor.execute("UPDATE account SET balance = %s WHERE id = 1", [cursor.fetchone()[0] + 10])
                sql.commit()
                return "posted"
        except pymysql.OperationalError:
            time.sleep(1)


@pytest.mark.deep
@pytest.mark.parametrize("hazards", [{}, {"crashes": 1}], ids=str)
def test_who_polls_so_polls_in_vain(trial: Trial, hazards: dict[str, int]) -> None:
    """The search had no end."""
    workers = [worker("Ann", connects_again), worker("Bob", connects_again)]
    result = trial(workers, invariant=at_least_what_was_posted, control=False, **hazards)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


def has_one_wants_another() -> float:
    """Returns when it began to wait."""
    with shop.connect(read_timeout=2, autocommit=True) as sql, sql.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('b', 0)")
        began = time.time()
        try:
            cursor.execute(NAME)
        except pymysql.OperationalError:
            time.sleep(60)
        return began


def asks_for_the_first(after: float, *, sql: Any) -> tuple[bool, float]:
    """Whether it gets the name that the other one has, after so many seconds with the one that he wants; and when."""
    with sql.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('a', 0)")
        time.sleep(after)
        cursor.execute("SELECT GET_LOCK('b', 0)")
        return bool(cursor.fetchone()[0]), time.time()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("after", "word"), [(2.8, "violated"), (3.5, "kept")])
def test_the_server_looks_every_second_whether_the_client_is_there(
    trial: Trial, after: float, word: str
) -> None:
    """Its client reads for 2 s; 1 s later its session is over."""
    free = (lambda ann, bob: bob[0] or bob[1] - ann < after - 0.2, "the name is not free")
    workers = [worker("Ann", has_one_wants_another), worker("Bob", asks_for_the_first, after)]
    result = trial(workers, invariant=free, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)


def sleeps() -> None:
    with shop.connect(read_timeout=2) as sql, sql.cursor() as cursor:
        cursor.execute("SELECT SLEEP(3)")


def test_a_sleep_that_is_longer_is_not_judged(trial: Trial) -> None:
    with pytest.raises(Mistake) as mistake:
        trial([sleeps, sleeps])
    assert "a read_timeout of 2 s, and sleeps in MariaDB for 3 s" in str(mistake.value)
    assert READS_ON in str(mistake.value)
