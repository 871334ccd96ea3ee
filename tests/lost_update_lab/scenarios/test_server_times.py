"""Times that PostgreSQL's own clock writes: whoever compares them, they are those of the schedule, or that is said."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from lost_update_lab import Result, worker

Trial = Callable[..., Result]


def outbox(default: str, sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS outbox, mark, sent")
    sql.execute(f"CREATE TABLE outbox (what text PRIMARY KEY, made timestamptz {default})")
    sql.execute("CREATE TABLE mark (last timestamptz); CREATE TABLE sent (what text)")
    sql.execute("INSERT INTO mark VALUES ('2020-01-01')")


def writes(insert: str, what: str, sql: Any) -> None:
    with sql.transaction():
        sql.execute(insert, [what])


def writes_and_sends(insert: str, what: str, sql: Any) -> None:
    """What is newer than the mark. An event that began earlier, and commits later, is never sent."""
    writes(insert, what, sql)
    with sql.transaction():
        (last,) = sql.execute("SELECT last FROM mark").fetchone()
        rows = [each for each in sql.execute("SELECT what, made FROM outbox ORDER BY made") if each[1] > last]
        for each, _ in rows:
            sql.execute("INSERT INTO sent VALUES (%s)", [each])
        if rows:
            sql.execute("UPDATE mark SET last = %s", [rows[-1][1]])


def all_up_to_the_mark_are_sent(sql: Any) -> bool:
    left = (
        "SELECT 1 FROM outbox WHERE made <= (SELECT last FROM mark) AND what NOT IN (SELECT what FROM sent)"
    )
    return not sql.execute(left).fetchone()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("default", "insert"),
    [
        ("DEFAULT now()", "INSERT INTO outbox (what) VALUES (%s)"),
        ("", "INSERT INTO outbox VALUES (%s, now())"),
    ],
)
def test_the_order_in_which_transactions_begin_is_open(
    trial: Trial, default: str, insert: str, first: bool
) -> None:
    """It was that of the workers: it was `kept` if the one who sends came first."""
    workers = [worker("Ann", writes, insert, "a"), worker("Bob", writes_and_sends, insert, "b")]
    result = trial(
        workers if first else workers[::-1],
        setup=partial(outbox, default),
        invariant=(all_up_to_the_mark_are_sent, "an event is never sent"),
        control=False,
    )
    assert result.verdict == "violated"


def deposits_table(default: str, sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS deposit, closing")
    sql.execute(f"CREATE TABLE deposit (amount int, made timestamptz DEFAULT {default})")
    sql.execute(f"CREATE TABLE closing (balance int, made timestamptz DEFAULT {default})")


def deposit(sql: Any) -> None:
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        sql.execute("INSERT INTO deposit (amount) VALUES (10)")


def close(sql: Any) -> None:
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        (total,) = sql.execute("SELECT coalesce(sum(amount), 0) FROM deposit").fetchone()
        sql.execute("INSERT INTO closing (balance) VALUES (%s)", [total])


def nothing_of_later_is_in_it(sql: Any) -> bool:
    until = "SELECT coalesce(sum(amount), 0) FROM deposit WHERE deposit.made <= closing.made"
    return not sql.execute(f"SELECT 1 FROM closing WHERE balance > ({until})").fetchone()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("first", [deposit, close])
@pytest.mark.parametrize(("default", "verdict"), [("now()", "violated"), ("clock_timestamp()", "kept")])
def test_an_invariant_compares_them(
    trial: Trial, default: str, verdict: str, first: Callable[..., None]
) -> None:
    workers = [first, close if first is deposit else deposit]
    invariant = nothing_of_later_is_in_it, "a deposit of later is in it"
    result = trial(workers, setup=partial(deposits_table, default), invariant=invariant, control=False)
    assert (result.verdict, result.exhausted) == (verdict, True)


def deposits_and_tells(sql: Any) -> float:
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        made = sql.execute("INSERT INTO deposit (amount) VALUES (10) RETURNING made").fetchone()[0]
    return float(made.timestamp())


def closes_and_tells(sql: Any) -> tuple[int, float]:
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        (total,) = sql.execute("SELECT coalesce(sum(amount), 0) FROM deposit").fetchone()
        insert = "INSERT INTO closing (balance) VALUES (%s) RETURNING made"
        (made,) = sql.execute(insert, [total]).fetchone()
    return total, made.timestamp()


@pytest.mark.deep
def test_an_invariant_compares_the_workers_results(trial: Trial) -> None:
    workers = [worker("Ann", deposits_and_tells), worker("Bob", closes_and_tells)]
    of_later = lambda ann, bob: not (bob[0] and ann > bob[1]), "a deposit of later is in it"
    result = trial(workers, setup=partial(deposits_table, "now()"), invariant=of_later, control=False)
    assert result.verdict == "violated"


def closes_and_looks(sql: Any) -> bool:
    close(sql)
    late = "SELECT count(*) FROM deposit d, closing c WHERE d.made > c.made AND c.balance > 0"
    return not sql.execute(late).fetchone()[0]


@pytest.mark.parametrize("first", [True, False])
def test_a_command_compares_two_columns(trial: Trial, first: bool) -> None:
    workers = [worker("Ann", deposit), worker("Bob", closes_and_looks)]
    result = trial(
        workers if first else workers[::-1],
        setup=partial(deposits_table, "now()"),
        invariant=(lambda *told: False not in told, "a deposit of later is in it"),
        control=False,
    )
    assert result.verdict == "violated"


def messages(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS sms")
    sql.execute("CREATE TABLE sms (who text, made timestamptz DEFAULT now())")


def sends_twice(seconds: int, who: str, sql: Any) -> None:
    sql.execute("INSERT INTO sms (who) VALUES (%s)", [who])
    time.sleep(seconds)
    sql.execute("INSERT INTO sms (who) VALUES (%s)", [who])


def a_minute_is_between(sql: Any) -> bool:
    between = "SELECT extract(epoch FROM max(made) - min(made)) FROM sms GROUP BY who"
    return all(59 < seconds < 61 for (seconds,) in sql.execute(between))


def test_a_sleep_is_in_the_rows_that_an_invariant_compares(trial: Trial) -> None:
    workers = [worker(name, sends_twice, 60, name) for name in ("Ann", "Bob")]
    invariant = a_minute_is_between, "less, or more, than a minute is between"
    assert trial(workers, setup=messages, invariant=invariant, control=False).verdict == "kept"


HOLD = "CREATE TABLE hold (seat int PRIMARY KEY, made timestamptz{default})"
NOTES_IT = """
CREATE FUNCTION notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.made := now(); RETURN NEW; END $$;
CREATE TRIGGER notes BEFORE INSERT ON hold FOR EACH ROW EXECUTE FUNCTION notes()
"""
TODAY = "CREATE FUNCTION at_present() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now()'"
NOTES_IT_TOO = NOTES_IT.replace("NEW.made := now()", "NEW.made = clock_timestamp()").replace(
    "INSERT ON", "INSERT OR UPDATE ON"
)
WAYS = {
    "two views": [
        HOLD.format(default=" DEFAULT now()"),
        "CREATE VIEW one AS SELECT seat, made AS since FROM hold",
        "CREATE VIEW held AS SELECT seat, since FROM one",
    ],
    "a generated column": [
        "CREATE TABLE hold (seat int PRIMARY KEY, born timestamptz DEFAULT now(), "
        "made timestamptz GENERATED ALWAYS AS (born) STORED)",
        "CREATE VIEW held AS SELECT seat, made AS since FROM hold",
    ],
    "a trigger": [
        HOLD.format(default=""),
        NOTES_IT,
        "CREATE VIEW held AS SELECT seat, made AS since FROM hold",
    ],
    "a trigger of each write": [
        HOLD.format(default=""),
        NOTES_IT_TOO,
        "CREATE VIEW held AS SELECT seat, made AS since FROM hold",
    ],
    "a trigger that reckons with one": [
        HOLD.format(default=" DEFAULT now(), until timestamptz"),
        NOTES_IT.replace("NEW.made := now()", "NEW.until := NEW.made + interval '1 h'"),
        "CREATE VIEW held AS SELECT seat, until - interval '1 h' AS since FROM hold",
    ],
    "another name": [
        HOLD.format(default=" DEFAULT now()"),
        "CREATE VIEW held AS SELECT seat, since FROM hold AS other (seat, since)",
    ],
    "a function": [
        TODAY,
        HOLD.format(default=" DEFAULT at_present()"),
        "CREATE VIEW held AS SELECT seat, made AS since FROM hold",
    ],
}


def holds_table(way: str, sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS hold, sale CASCADE; CREATE TABLE sale (who text)")
    sql.execute("DROP FUNCTION IF EXISTS notes, at_present")
    for each in WAYS[way]:
        sql.execute(each)


def takes(who: str, sql: Any) -> None:
    """A hold of less than ten minutes keeps others out."""
    time.sleep(900)
    row = sql.execute("SELECT since FROM held").fetchone()
    if row and datetime.now(UTC) - row[0] <= timedelta(minutes=10):
        return
    if row or sql.execute("INSERT INTO hold (seat) VALUES (1) ON CONFLICT DO NOTHING").rowcount:
        sql.execute("INSERT INTO sale VALUES (%s)", [who])


def sold_once(sql: Any) -> bool:
    return bool(sql.execute("SELECT count(*) <= 1 FROM sale").fetchone()[0])


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_time_that_no_command_shows_is_followed(trial: Trial, way: str) -> None:
    """By the server's own clock it was some seconds after the start, however late it was: `violated`, or `kept`."""
    workers = [worker(name, takes, name) for name in ("Ann", "Bob")]
    sold = sold_once, "sold twice"
    assert trial(workers, setup=partial(holds_table, way), invariant=sold, control=False).verdict == "kept"


def payments(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS payment; CREATE TABLE payment (amount int, created timestamptz)")


def pays(sql: Any) -> None:
    of_today = "SELECT coalesce(sum(amount), 0) FROM payment WHERE created > now() - interval '1 day'"
    if sql.execute(of_today).fetchone()[0] + 60 <= 100:
        sql.execute("INSERT INTO payment (amount, created) VALUES (60, now())")


def test_a_name_of_postgresql_s_own_columns(trial: Trial) -> None:
    """`created` was refused: some views of information_schema have it, of a domain with a DEFAULT."""
    limit = (
        lambda sql: sql.execute("SELECT coalesce(sum(amount), 0) <= 100 FROM payment").fetchone()[0],
        "beyond the limit",
    )
    assert trial([pays, pays], setup=payments, invariant=limit, control=False).verdict == "violated"


def nodes(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS node; CREATE TABLE node (seen timestamptz)")
    sql.execute("INSERT INTO node VALUES (now())")


def beats(sql: Any) -> None:
    sql.execute("UPDATE node SET seen = now()")


def reaps(sql: Any) -> None:
    (seen,) = sql.execute("SELECT seen FROM node").fetchone()
    if datetime.now(UTC) - seen > timedelta(seconds=30):
        time.perf_counter()  # as SQLAlchemy does when it compiles a statement
        sql.execute("DELETE FROM node")


def test_what_one_clock_shows_decides_whether_another_is_asked(trial: Trial) -> None:
    """That ended as "it keeps state that survives a schedule"."""
    alive = lambda sql: sql.execute("SELECT count(*) = 1 FROM node").fetchone()[0], "a living node is reaped"
    result = trial([beats, reaps], setup=nodes, invariant=alive, pauses=1, control=False)
    assert (result.verdict, result.cause) == ("violated", "")
