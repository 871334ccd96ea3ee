"""On MariaDB, too, a command that reads and writes is explored as the transaction that it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from lost_update_lab import worker
from lost_update_lab.model.errors import IN_A_TRANSACTION, ONE_BY_ONE
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial
from tests.lost_update_lab.scenarios.test_one_command import both, one_got_it

SCHEMA = (
    "DROP TABLE IF EXISTS job, seat",
    "DROP PROCEDURE IF EXISTS take",
    "DROP FUNCTION IF EXISTS claim",
    "CREATE TABLE job (id INT PRIMARY KEY, owner VARCHAR(20))",
    "CREATE TABLE seat (id INT AUTO_INCREMENT PRIMARY KEY, number INT NOT NULL, who VARCHAR(20) NOT NULL)",
    "INSERT INTO job VALUES (1, NULL)",
    "CREATE FUNCTION claim(me VARCHAR(20)) RETURNS INT BEGIN DECLARE free INT; "
    "SELECT COUNT(*) INTO free FROM job WHERE owner IS NULL; "
    "IF free > 0 THEN UPDATE job SET owner = me; END IF; RETURN free; END",
    "CREATE PROCEDURE take(me VARCHAR(20)) UPDATE job SET owner = me WHERE owner IS NULL",
)
CLAIM = (
    "UPDATE job SET owner = %s WHERE id = (SELECT id FROM (SELECT id FROM job WHERE owner IS NULL) AS free)"
)
BOOK = "INSERT INTO seat (number, who) SELECT 7, %s FROM job WHERE NOT EXISTS (SELECT 1 FROM seat WHERE number = 7)"


def opened() -> None:
    for statement in SCHEMA:
        shop.ask(statement)


def sent(query: str) -> Callable[[str], bool]:
    """In autocommit, under READ COMMITTED."""

    def operation(who: str) -> bool:
        with shop.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            try:
                written = cursor.execute(query, [who])
            except (pymysql.OperationalError, pymysql.IntegrityError):
                return False
            return bool(cursor.fetchone()[0] if cursor.description else written)

    return operation


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("query", "word"),
    [
        (CLAIM, KEPT),  # what the SELECT in an UPDATE reads is locked, what that of an INSERT reads is not
        (BOOK, VIOLATED),
        ("SELECT claim(%s)", VIOLATED),
        ("UPDATE job SET owner = %s WHERE id = 1 AND owner IS NULL", KEPT),
    ],
)
def test_two_at_once_in_one_command(trial: Trial, query: str, word: str) -> None:
    result = trial(both(sent(query)), setup=opened, invariant=one_got_it, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)


def in_autocommit(*queries: str) -> Callable[[], int]:
    """Under READ COMMITTED. Returns how many rows the last one has changed."""

    def operation() -> int:
        with shop.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            return [cursor.execute(query) for query in queries][-1]

    return operation


def first_free(*, sql: Any) -> int:
    """In a transaction."""
    sql.begin()
    with sql.cursor() as cursor:
        cursor.execute("SELECT id FROM shift ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
        (found,) = cursor.fetchone()
    sql.commit()
    return found


def two_shifts() -> None:
    shop.ask("DROP TABLE IF EXISTS shift")
    shop.ask("CREATE TABLE shift (id INT PRIMARY KEY, on_call BOOL NOT NULL, paged INT NOT NULL DEFAULT 0)")
    shop.ask("INSERT INTO shift (id, on_call) VALUES (1, FALSE), (2, TRUE)")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            in_autocommit("UPDATE shift SET paged = 1 WHERE on_call"),
            in_autocommit("UPDATE shift SET on_call = NOT on_call"),
        ),
        (first_free, in_autocommit("UPDATE shift SET paged = paged + 1 WHERE id = 1")),
    ],
    ids=["several rows", "SKIP LOCKED"],
)
def test_a_write_under_way_is_met(trial: Trial, first: Any, second: Any) -> None:
    """One row is on call at any time; and the first one is free, although others have looked at it."""
    one = (lambda ann, bob: ann == 1, "not the first row, or none")
    result = trial([worker("Ann", first), worker("Bob", second)], setup=two_shifts, invariant=one)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)


def keeps_the_answer(who: str) -> bool:
    with shop.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SET @mine = claim(%s)", [who])
        cursor.execute("SELECT @mine")
        return bool(cursor.fetchone()[0])


@pytest.mark.deep
def test_a_variable_that_is_set_by_a_function(trial: Trial) -> None:
    """It was taken for a command that no other worker sees."""
    result = trial(both(keeps_the_answer), setup=opened, invariant=one_got_it, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)
    assert "SET @mine = claim('Ann')" in str(result)
    assert "by itself" in str(result)


def calls(who: str) -> None:
    shop.ask("CALL take(%s)", who)


def counts(who: str) -> int:
    with shop.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(CLAIM, [who])
        cursor.execute("SELECT ROW_COUNT()")
        return cursor.fetchone()[0]


@pytest.mark.parametrize(
    ("operation", "told", "remedy"),
    [
        (calls, "each command of a procedure commits by itself there (CALL take", ONE_BY_ONE),
        (counts, "the explorer has sent a COMMIT since (SELECT ROW_COUNT())", IN_A_TRANSACTION),
    ],
)
def test_what_would_not_be_the_same_is_not_judged(
    trial: Trial, operation: Any, told: str, remedy: str
) -> None:
    with pytest.raises(Mistake) as mistake:
        trial(both(operation), setup=opened)
    assert told in str(mistake.value)
    assert remedy in str(mistake.value)


# -- what a worker had sent that has crashed ---------------------------------------------------------------------------


def leads() -> None:
    """A leader writes over a connection of its own."""
    one, other = (shop.connect(autocommit=True) for _ in range(2))
    with one, other, one.cursor() as lock, other.cursor() as cursor:
        lock.execute("SELECT GET_LOCK('leader', 60)")
        cursor.execute("UPDATE shift SET paged = paged + 1 WHERE id = 1")
        lock.execute("SELECT RELEASE_LOCK('leader')")


def looks(*, sql: Any) -> bool:
    """The next leader: what it has read is so until it resigns."""
    with sql.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('leader', 60)")
        found = set()
        for _ in range(2):
            cursor.execute("SELECT paged FROM shift WHERE id = 1")
            found.add(cursor.fetchone()[0])
        cursor.execute("SELECT RELEASE_LOCK('leader')")
    return len(found) == 1


def has_the_row(*, sql: Any) -> None:
    sql.begin()
    with sql.cursor() as cursor:
        cursor.execute("SELECT id FROM shift WHERE id = 1 FOR UPDATE")
    sql.commit()


@pytest.mark.deep
@pytest.mark.parametrize(("crashes", "word"), [(1, VIOLATED), (0, KEPT)])
def test_a_command_that_waits_goes_on_without_its_client(trial: Trial, crashes: int, word: str) -> None:
    workers = [worker("Ann", leads), worker("Bob", looks), worker("Cid", has_the_row)]
    steady = lambda ann, bob, cid: bob is not False  # noqa: E731
    result = trial(workers, setup=two_shifts, invariant=steady, crashes=crashes, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
