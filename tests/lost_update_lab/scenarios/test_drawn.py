"""Without an invariant: a number that a sequence gave out means nothing, wherever it stands; one that the operations
compute counts, wherever it stands, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from lost_update_lab import Result
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.drawn import measured
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]


def shop(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS bought, outbox, place; DROP SEQUENCE IF EXISTS other_numbers")
    sql.execute("CREATE TABLE bought (id serial PRIMARY KEY, who text, ref text, copy int)")
    sql.execute("CREATE TABLE outbox (id serial PRIMARY KEY, payload jsonb, ids int[])")
    sql.execute("CREATE SEQUENCE other_numbers")
    sql.execute("CREATE TABLE place (number serial, who text)")
    sql.execute("INSERT INTO place (who) VALUES ('somebody')")


def publishes(who: str, newest: bool, sql: Any) -> str:
    """The number of the order stands in an integer, in texts, in JSON, in an array, and in the answer."""
    with sql.transaction():
        (number,) = sql.execute("INSERT INTO bought (who) VALUES (%s) RETURNING id", [who]).fetchone()
        if newest:
            (number,) = sql.execute("SELECT max(id) FROM bought").fetchone()
        sql.execute("UPDATE bought SET ref = %s, copy = id WHERE id = %s", [f"R-{number:05}", number])
        (another,) = sql.execute("SELECT nextval('other_numbers')").fetchone()
        payload = Jsonb({"order": number, "number": another, "by": who})
        sql.execute("INSERT INTO outbox (payload, ids) VALUES (%s, %s)", [payload, [number]])
    return f"/orders/{number}"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("newest", "right"), [(True, VIOLATED), (False, KEPT)])
def test_a_drawn_number_is_one_wherever_it_stands(trial: Trial, newest: bool, right: str) -> None:
    """It was one in its own column and in foreign keys only. After a draw in vain, as by a crash, the outbox of a right
    operation was violated. That each outbox names its own order counts."""
    workers = [(publishes, who, newest) for who in ("Ann", "Bob")]
    assert trial(workers, setup=shop, control=False, crashes=1).verdict == right


def takes_the_next_place(who: str, sql: Any) -> None:
    with sql.transaction():
        (last,) = sql.execute("SELECT max(number) FROM place").fetchone()
        sql.execute("INSERT INTO place (number, who) VALUES (%s, %s)", [last + 1, who])


def moves_down(who: str, sql: Any) -> None:
    with sql.transaction():
        (number,) = sql.execute("SELECT number FROM place WHERE who = 'somebody'").fetchone()
        sql.execute("UPDATE place SET number = %s WHERE who = 'somebody'", [number + 1])


@pytest.mark.parametrize("operation", [takes_the_next_place, moves_down])
def test_a_number_that_is_computed_counts_in_a_column_that_draws(
    trial: Trial, operation: Callable[..., None]
) -> None:
    """Each new number in a column with a sequence counted as drawn: two had the same place."""
    workers = [(operation, who) for who in ("Ann", "Bob")]
    assert trial(workers, setup=shop, control=False).verdict == VIOLATED


def buys(sql: Any) -> int:
    sql.execute("INSERT INTO bought (who) VALUES ('Ann')")
    (count,) = sql.execute("SELECT count(*) FROM bought").fetchone()
    return int(count)


def buys_too(sql: Any) -> int:
    sql.execute("INSERT INTO bought (who) VALUES ('Bob')")
    (count,) = sql.execute("SELECT count(*) FROM bought").fetchone()
    return int(count)


def test_an_answer_that_is_some_new_row_s_number_by_chance_counts(trial: Trial) -> None:
    """Both are told that they are the second one. 2 is the number of a new row, too."""
    assert trial([buys, buys_too], setup=shop, control=False).verdict == VIOLATED


def test_a_number_that_moves_by_another_distance_is_none(trial: Trial) -> None:
    """The control of the measure itself."""
    place, there = ("table", "column"), {("table", "column"), ("table", "id")}
    once = [(place, 5), (("table", "id"), 7)]
    found = measured([(once, [(place, 105), (("table", "id"), 7)])], {1: 100}, {1: 4}, there)
    assert found.places == {place: 1}
    assert found.values == {("table", "id")}
    assert found.marked(place, 6) != 6
    assert found.marked(place, 4) == 4  # given out before
    assert not measured([(once, [(place, 106), (("table", "id"), 7)])], {1: 100}, {1: 4}, there).places


def invoices(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS invoice; DROP SEQUENCE IF EXISTS invoice_number")
    sql.execute("CREATE SEQUENCE invoice_number")
    sql.execute("CREATE TABLE invoice (number text PRIMARY KEY, who text)")


def asks_for_two_numbers(who: str, sql: Any) -> None:
    with sql.transaction():
        for _ in range(2):
            (number,) = sql.execute("SELECT nextval('invoice_number')").fetchone()
            sql.execute("INSERT INTO invoice VALUES (%s, %s)", [f"R-{number}", who])


@pytest.mark.deep
def test_a_sequence_need_not_belong_to_a_column(trial: Trial) -> None:
    """Where no changed column draws by default, no number was known as drawn: 1 and 3 are Ann's
    in no serial order."""
    workers = [(asks_for_two_numbers, who) for who in ("Ann", "Bob")]
    assert trial(workers, setup=invoices, control=False, crashes=1).verdict == KEPT


def hands_over(who: str, key: str, twice: bool, sql: Any, redis: Any) -> None:
    """An order of the database, and its number in Redis: in a queue, and in the name of a key."""
    (number,) = sql.execute("INSERT INTO bought (who) VALUES (%s) RETURNING id", [who]).fetchone()
    redis.rpush("queue", number)
    if twice and redis.llen("queue") > 1:
        redis.rpush("queue", number)
    redis.set(f"order:{number}", key, ex=3600 if key == "leased" else None)


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(("twice", "right"), [(False, KEPT), (True, VIOLATED)])
@pytest.mark.parametrize("key", ["lasting", "leased"])
def test_a_drawn_number_in_redis_stands_for_its_row(trial: Trial, key: str, twice: bool, right: str) -> None:
    """The queue held 2 before 1, which it does in no serial order, as numbers go. That the one that comes second is in
    it twice counts: both are, if each sees the other one there."""
    workers = [(hands_over, who, key, twice) for who in ("Ann", "Bob")]
    assert trial(workers, setup=shop, control=False).verdict == right
