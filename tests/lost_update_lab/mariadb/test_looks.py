"""Somebody commits between the moment at which a command of MariaDB looks and the one at which it locks its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from lost_update_lab import worker
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Fault
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.under_test.operations import VIOLATED
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial
from tests.lost_update_lab.scenarios.test_looks import both

LOOKED = "it has looked, and has not locked a row yet"
SUM = "SELECT COALESCE(SUM(n), 0) FROM item"
UPSERT = "INSERT INTO total SELECT 1, COALESCE(SUM(n), 0) FROM item ON DUPLICATE KEY UPDATE sum = VALUES(sum)"
VALUES = f"INSERT INTO total VALUES (1, ({SUM})) ON DUPLICATE KEY UPDATE sum = VALUES(sum)"
REPLACE = "REPLACE INTO total SELECT 1, COALESCE(SUM(n), 0) FROM item"
UPDATE = f"UPDATE total SET sum = ({SUM}) WHERE id = 1"
SCHEMA = (
    "DROP TABLE IF EXISTS item, total, log",
    "DROP FUNCTION IF EXISTS refresh",
    "DROP FUNCTION IF EXISTS counted",
    "CREATE TABLE item (n INT NOT NULL)",
    "CREATE TABLE total (id INT PRIMARY KEY, sum INT NOT NULL)",
    "INSERT INTO total VALUES (1, 0)",
    "CREATE FUNCTION refresh() RETURNS INT BEGIN DECLARE found INT; "
    f"{SUM.replace(' FROM', ' INTO found FROM')}; UPDATE total SET sum = found WHERE id = 1; RETURN found; END",
    "CREATE FUNCTION counted() RETURNS INT BEGIN DECLARE found INT; "
    f"{SUM.replace(' FROM', ' INTO found FROM')}; REPLACE INTO total VALUES (1, found); RETURN found; END",
)


def opened() -> None:
    for statement in SCHEMA:
        shop.ask(statement)


def adds(refresh: str, level: str = "READ COMMITTED", begins: bool = False) -> Callable[[int], str]:
    """One more item, committed; then the sum of all. `begins`: in a transaction."""

    def operation(n: int) -> str:
        with shop.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            cursor.execute("INSERT INTO item VALUES (%s)", [n])
            if begins:
                connection.begin()
            try:
                cursor.execute(refresh)
            except pymysql.OperationalError:  # a deadlock: its row is of no use to anybody
                connection.rollback()
                cursor.execute("UPDATE total SET sum = -1")
            if begins:
                connection.commit()
        return "ok"

    return operation


def is_the_sum() -> bool:
    ((found, right),) = shop.ask("SELECT sum, (SELECT SUM(n) FROM item) FROM total")
    return found in (-1, right or 0)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("refresh", "word"),
    [
        (UPSERT, VIOLATED),
        ("SELECT counted()", VIOLATED),
        (UPDATE, KEPT),  # MariaDB locks the row, and looks then
        (REPLACE, VIOLATED),
        (VALUES, VIOLATED),
    ],
)
@pytest.mark.parametrize("begins", [False, True], ids=["alone", "in a transaction"])
def test_a_sum_that_misses_what_was_committed_meanwhile(
    trial: Trial, refresh: str, word: str, begins: bool
) -> None:
    """They were kept."""
    operation = adds(refresh, begins=begins)
    result = trial(both(operation), setup=opened, invariant=is_the_sum, control=False)
    assert (result.verdict, result.exhausted) == (word, True), str(result)
    assert (LOOKED in str(result)) is (word == VIOLATED)


@pytest.mark.deep
@pytest.mark.parametrize("refresh", [UPSERT, VALUES])
def test_under_repeatable_read_what_it_looks_at_is_locked(trial: Trial, refresh: str) -> None:
    result = trial(both(adds(refresh, "REPEATABLE READ")), setup=opened, invariant=is_the_sum, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("refresh", "level"),
    [
        ("SELECT refresh()", "REPEATABLE READ"),
        ("UPDATE total SET sum = -1 WHERE id = (SELECT IF(SUM(n) = 3, 1, 2) FROM item)", "READ COMMITTED"),
        (f"SELECT id FROM total WHERE id = 1 AND ({SUM}) = 3 FOR UPDATE", "REPEATABLE READ"),
    ],
)
def test_where_nobody_can_come_between_it_is_not_kept(trial: Trial, refresh: str, level: str) -> None:
    """They were kept. MariaDB looks first there, too, and has no place where it would wait."""
    any_sum = (lambda ann, bob: True, "anything")
    result = trial(both(adds(refresh, level)), setup=opened, invariant=any_sum, control=False)
    assert result.verdict == INCONCLUSIVE, str(result)
    told = str(result)
    assert "in one command, MariaDB looks at rows and locks others later" in told
    assert "send the look as a SELECT of its own" in told


TAKE, GIVE = (
    f"UPDATE account SET balance = balance {sign} 10 WHERE id = {which}"
    for sign, which in (("-", "s"), ("+", "t"))
)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("body", "word"),
    [
        (f"BEGIN {TAKE}; {GIVE}; END", INCONCLUSIVE),
        (TAKE, KEPT),
        (
            f"BEGIN DECLARE n INT DEFAULT 2; WHILE n > 0 DO {TAKE}; SET n = n - 1; END WHILE; END",
            INCONCLUSIVE,
        ),
    ],
    ids=["two", "one", "repeated"],
)
def test_a_routine_that_locks_by_several_statements_is_not_kept(trial: Trial, body: str, word: str) -> None:
    """Two transfers in opposite directions deadlock, and were kept."""

    def opens() -> None:
        for statement in (
            "DROP TABLE IF EXISTS account",
            "DROP PROCEDURE IF EXISTS transfer",
            "CREATE TABLE account (id INT PRIMARY KEY, balance INT)",
            "INSERT INTO account VALUES (1, 100), (2, 100)",
            f"CREATE PROCEDURE transfer(s INT, t INT) {body}",
        ):
            shop.ask(statement)

    def transfer(source: int, target: int) -> None:
        with shop.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CALL transfer(%s, %s)", [source, target])
            connection.commit()

    workers = [worker("Ann", transfer, 1, 2), worker("Bob", transfer, 2, 1)]
    result = trial(workers, setup=opens, control=False)
    assert result.verdict == word, str(result)
    told = " ".join(str(result).split())
    assert ("send the statements of that function one by one" in told) is (word == INCONCLUSIVE)


@pytest.mark.deep
def test_with_faults_it_comes_to_its_end(trial: Trial) -> None:
    """A crash, or a reply that is lost, in the middle of it."""
    counts = "INSERT INTO total SELECT 1, COUNT(*) FROM total ON DUPLICATE KEY UPDATE sum = sum + VALUES(sum)"

    def operation(*, sql: Any) -> None:
        with sql.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(counts)

    def no_more_than_two() -> bool:
        ((found,),) = shop.ask("SELECT sum FROM total")
        return bool(found <= 2)

    kinds = {"crashes": 1, "lost_replies": 1}
    result = trial([operation] * 2, setup=opened, invariant=no_more_than_two, control=False, **kinds)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)
    assert {str(Fault.CRASH), str(Fault.LOST_REPLY)} <= set(result.hazards)


@pytest.mark.deep
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("faults", [0, 1])
def test_known_or_executed_it_comes_to_the_same(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, level: str, faults: int
) -> None:
    how = {"setup": opened, "invariant": is_the_sum, "crashes": faults, "control": False}
    short = trial(both(adds(UPSERT, level)), **how)
    monkeypatch.setattr(Harness, "in_memory_run", lambda *_: None)
    whole = trial(both(adds(UPSERT, level)), **how)
    assert (short.id, short.schedules, short.hazards) == (whole.id, whole.schedules, whole.hazards)
    assert short.exhausted
    assert whole.exhausted


@pytest.mark.deep
def test_the_triggers_are_gone_with_the_search(trial: Trial) -> None:
    left = []

    def looked() -> bool:
        left.append(
            shop.ask("SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_name LIKE 'explorer%%'")
        )
        return True

    trial(both(adds(UPSERT)), setup=opened, invariant=looked, control=False)
    assert ((2,),) in left
    trial(
        both(adds(UPDATE)), setup=opened, invariant=is_the_sum, control=False
    )  # opens in a database without them


@pytest.mark.deep
def test_a_write_under_way_is_met_where_all_reads_lock(trial: Trial) -> None:
    """With innodb_snapshot_isolation a transaction that has waited for another one's write ends with error 1020."""

    def doubles(*, sql: Any) -> bool:
        with sql.cursor() as cursor:
            cursor.execute("SET SESSION innodb_snapshot_isolation = ON")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            sql.begin()
            try:
                cursor.execute("UPDATE total SET sum = 2 * sum WHERE id = 1")
            except pymysql.OperationalError as error:
                return error.args[0] != 1020
        sql.commit()
        return True

    def counts() -> None:
        shop.ask("UPDATE total SET sum = sum + 1 WHERE id = 1")

    never = (lambda ann, bob: ann, "error 1020")
    workers = [worker("Ann", doubles), worker("Bob", counts)]
    result = trial(workers, setup=opened, invariant=never, control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)
