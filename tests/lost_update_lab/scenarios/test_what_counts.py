"""Without an invariant: which differences between two outcomes mean something, and which do not."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.invariants import balance_conserved
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import VIOLATED
from lost_update_lab.under_test.results import ResultText

Trial = Callable[..., Result]
KEYS = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
TIMES = "2026-12-24 10:00:00+00", "2026-12-24 11:00:00+00"
FREE = "SELECT at FROM slot WHERE NOT EXISTS (SELECT FROM booking WHERE booking.at = slot.at) ORDER BY at LIMIT 1"


def slots(kind: str, values: tuple[str, str]) -> Callable[[Any], None]:
    def make(sql: Any) -> None:
        sql.execute("DROP TABLE IF EXISTS booking, slot")
        sql.execute(f"CREATE TABLE slot (at {kind} PRIMARY KEY)")
        sql.execute(f"CREATE TABLE booking (id serial PRIMARY KEY, at {kind}, who text)")
        sql.execute("INSERT INTO slot VALUES (%s), (%s)", values)

    return make


def books(who: str, sql: Any) -> None:
    if found := sql.execute(FREE).fetchone():
        sql.execute("INSERT INTO booking (at, who) VALUES (%s, %s)", (found[0], who))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("kind", "values"), [("uuid", KEYS), ("timestamptz", TIMES)])
@pytest.mark.parametrize("names", [("Ann", "Bob"), ("somebody", "somebody")])
def test_two_bookings_of_one_slot_are_not_two_of_two(
    trial: Trial, kind: str, values: tuple[str, str], names: tuple[str, str]
) -> None:
    """They were: each random key, and each time of day, counted as equal to any other."""
    workers = [(books, name) for name in names]
    assert trial(workers, setup=slots(kind, values), control=False).verdict == VIOLATED


def books_what_it_is_told(slot: str, sql: Any) -> None:
    sql.execute("DELETE FROM booking")
    sql.execute("INSERT INTO booking (at) VALUES (%s)", (slot,))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("given", [lambda call, key: (call, key), lambda call, key: (partial(call, key),)])
def test_a_key_among_the_arguments_is_a_constant(trial: Trial, given: Callable[..., Any]) -> None:
    """The last one wins: after it, the row of both is one of no serial order."""
    workers = [given(books_what_it_is_told, key) for key in KEYS]
    result = trial(workers, setup=slots("uuid", KEYS), control=False)
    assert result.verdict == VIOLATED
    assert KEYS[0] in str(result)


def makes_keys(who: str, sql: Any) -> uuid.UUID:
    """What an order has of its own: keys, times."""
    key = uuid.uuid4()
    with sql.transaction():
        sql.execute("INSERT INTO bought VALUES (%s, %s, %s)", (key, who, datetime.now(UTC)))
        sql.execute("INSERT INTO line VALUES (%s, %s, 'a pen')", (uuid.uuid4(), key))
    return key


def bought(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS bought, line")
    sql.execute("CREATE TABLE bought (id uuid PRIMARY KEY, who text, at timestamptz)")
    sql.execute("CREATE TABLE line (id uuid PRIMARY KEY, of uuid, what text)")


def lets_the_server_make_one(who: str, sql: Any) -> Any:
    return sql.execute("INSERT INTO bought (who) VALUES (%s) RETURNING id", (who,)).fetchone()[0]


def made_by_the_server(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS bought")
    sql.execute("CREATE TABLE bought (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), who text)")


@pytest.mark.answers_change
@pytest.mark.parametrize(
    ("setup", "operation"), [(bought, makes_keys), (made_by_the_server, lets_the_server_make_one)]
)
def test_fresh_keys_and_times_mean_nothing(
    trial: Trial, setup: Callable[..., None], operation: Callable[..., Any]
) -> None:
    workers = [(operation, "Ann"), (operation, "Bob")]
    assert trial(workers, setup=setup, control=False).verdict == KEPT


def takes(redis: Any) -> Any:
    job = redis.lindex("jobs", 0)
    redis.ltrim("jobs", 1, -1)
    return job


def pops(redis: Any) -> Any:
    return redis.lpop("jobs")


@pytest.mark.parametrize(("operation", "word"), [(takes, VIOLATED), (pops, KEPT)])
def test_results_of_bytes_differ(trial: Trial, operation: Callable[..., Any], word: str) -> None:
    """Both took the first job, and the second one was lost."""
    workers = [operation, operation]
    result = trial(workers, setup=lambda redis: redis.rpush("jobs", b"a", b"b"), control=False)
    assert result.verdict == word


class Job:
    def __init__(self, name: Any) -> None:
        self.name = name


def a_job(operation: Callable[..., Any], redis: Any) -> Job:
    return Job(operation(redis=redis))


@pytest.mark.parametrize(("operation", "word"), [(takes, VIOLATED), (pops, KEPT)])
def test_an_invariant_tells_objects_apart(trial: Trial, operation: Callable[..., Any], word: str) -> None:
    workers = [partial(a_job, operation), partial(a_job, operation)]
    given = {"setup": lambda redis: redis.rpush("jobs", b"a", b"b"), "control": False}
    assert trial(workers, invariant=lambda a, b: a.name != b.name, **given).verdict == word


def queue(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS queue")
    sql.execute("CREATE TABLE queue (id serial PRIMARY KEY, who text)")


def joins(who: str, sql: Any) -> int:
    """Returns its place in the queue."""
    (before,) = sql.execute("SELECT count(*) FROM queue").fetchone()
    sql.execute("INSERT INTO queue (who) VALUES (%s)", (who,))
    return int(before) + 1


def joins_and_asks_for_the_last(who: str, sql: Any) -> Any:
    sql.execute("INSERT INTO queue (who) VALUES (%s)", (who,))
    return sql.execute("SELECT max(id) FROM queue").fetchone()[0]


def is_told_its_number(who: str, sql: Any) -> Any:
    return sql.execute("INSERT INTO queue (who) VALUES (%s) RETURNING id", (who,)).fetchone()[0]


def joins_with_a_number_drawn_before(who: str, sql: Any) -> dict[str, int]:
    """The second one who draws a number may be the first in the queue."""
    (number,) = sql.execute("SELECT nextval('queue_id_seq')").fetchone()
    with sql.transaction():
        sql.execute("LOCK TABLE queue IN EXCLUSIVE MODE")
        (before,) = sql.execute("SELECT count(*) FROM queue").fetchone()
        sql.execute("INSERT INTO queue VALUES (%s, %s)", (number, who))
    return {"id": number, "place": before + 1}


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    ("operation", "word"),
    [
        (joins, VIOLATED),
        (joins_and_asks_for_the_last, VIOLATED),
        (is_told_its_number, KEPT),
        (joins_with_a_number_drawn_before, KEPT),
    ],
)
@pytest.mark.parametrize("names", [("Ann", "Bob"), ("somebody", "somebody")])
def test_the_number_of_a_new_row_stands_for_one_row(
    trial: Trial, operation: Callable[..., Any], word: str, names: tuple[str, str]
) -> None:
    """A place in the queue, 1 or 2, looked like the number of a row, and so every place was the same."""
    workers = [(operation, name) for name in names]
    assert trial(workers, setup=queue, control=False).verdict == word


@dataclass
class Knot:
    other: Any = None


def test_an_object_that_contains_itself_has_a_text() -> None:
    knot = Knot()
    knot.other = knot
    assert len(ResultText.of(knot)) < 100_000
    wide = [Job(Job(Job([Job(n) for n in range(1000)]))) for _ in range(100)]
    assert len(ResultText.of(wide)) < 1_000_000


def exact_amounts(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS purse")
    sql.execute("CREATE TABLE purse (id int PRIMARY KEY, wei numeric(40, 18), more jsonb)")
    sql.execute("INSERT INTO purse VALUES (1, 12.345678901234567890, '{\"a\": 12.345678901234567890}')")


def adds_a_little(sql: Any) -> None:
    (before,) = sql.execute("SELECT wei FROM purse").fetchone()
    sql.execute("UPDATE purse SET wei = %s", (before + Decimal("1e-16"),))


def adds_a_little_in_json(sql: Any) -> None:
    (before,) = sql.execute("SELECT more ->> 'a' FROM purse").fetchone()
    sql.execute(
        "UPDATE purse SET more = jsonb_build_object('a', %s::numeric)", (Decimal(before) + Decimal("1e-16"),)
    )


@pytest.mark.parametrize("operation", [adds_a_little, adds_a_little_in_json])
def test_the_last_digit_of_an_amount_counts(trial: Trial, operation: Callable[..., Any]) -> None:
    """As floats, what both have added and what one of them has added were equal."""
    result = trial([operation, operation], setup=exact_amounts, control=False)
    assert result.verdict == VIOLATED
    assert "12.345678901234567890" in str(result)
    sentence = "the sum of purse.wei is not what it was: money was made or lost"
    conserved = trial(
        [adds_a_little, adds_a_little], setup=exact_amounts, invariant=balance_conserved("purse.wei")
    )
    assert (conserved.verdict, conserved.sentence) == (VIOLATED, sentence)


def scaled(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS purse; CREATE TABLE purse (id int PRIMARY KEY, amount numeric)")
    sql.execute("INSERT INTO purse VALUES (1, 100)")


def becomes(amount: str, sql: Any) -> None:
    sql.execute("UPDATE purse SET amount = %s", (Decimal(amount),))


def test_zeros_at_the_end_of_an_amount_do_not(trial: Trial) -> None:
    workers = [(becomes, "5.00"), (becomes, "5.0")]
    assert trial(workers, setup=scaled, control=False).verdict == KEPT


def stamps_a_key(draws: Callable[[], str], sql: Any) -> None:
    """A version of the row that is random. Each attempt draws one."""
    while True:
        (before,) = sql.execute("SELECT amount FROM purse").fetchone()
        version = draws()
        sql.execute("INSERT INTO attempt VALUES (%s)", [version])
        given = [before + 1, version, before]
        if sql.execute("UPDATE purse SET amount = %s, version = %s WHERE amount = %s", given).rowcount:
            return
        sql.execute("DELETE FROM attempt WHERE version = %s", [version])


def versioned(sql: Any) -> None:
    scaled(sql)
    sql.execute("ALTER TABLE purse ADD version text; DROP TABLE IF EXISTS attempt")
    sql.execute("CREATE TABLE attempt (version text)")


@pytest.mark.parametrize("draws", [lambda: str(uuid.uuid4()), lambda: str(uuid.UUID(bytes=os.urandom(16)))])
def test_what_a_second_attempt_draws_is_no_constant(trial: Trial, draws: Callable[[], str]) -> None:
    """Whatever it draws by: the first one was taken for a constant, which the second has to be, too."""
    assert trial([(stamps_a_key, draws)] * 2, setup=versioned, control=False).verdict == KEPT
