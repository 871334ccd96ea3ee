"""DEFAULT now() goes by the virtual clock where it may be compared, or a command takes the latest row by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from lost_update_lab import Mistake, Result, worker
from lost_update_lab.servers.postgres.shadowed import Shadowed

Trial = Callable[..., Result]
MADE = """
SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attrdef
JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum JOIN pg_class c ON c.oid = adrelid
WHERE relname IN ('hold', 'history')
UNION ALL SELECT relname, concat(pg_get_viewdef(oid), reloptions, relacl) FROM pg_class WHERE relname = 'over'
UNION ALL SELECT proname, concat(pg_get_functiondef(oid), proacl) FROM pg_proc WHERE proname IN ('notes', 'is_over')
UNION ALL SELECT polname, concat(pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) FROM pg_policy
UNION ALL SELECT conname, concat(pg_get_constraintdef(oid), coninhcount, obj_description(oid)) FROM pg_constraint
WHERE conname IN ('is_past', 'was_past', 'past_day')
UNION ALL SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'late'
UNION ALL SELECT rulename, definition FROM pg_rules WHERE rulename = 'over_too'
ORDER BY 1, 2
"""
TABLES = """
CREATE TABLE hold (
    id serial PRIMARY KEY, paid bool NOT NULL DEFAULT false,
    made timestamptz NOT NULL DEFAULT now(),
    until timestamp NOT NULL DEFAULT timezone('utc', CURRENT_TIMESTAMP(3)) + interval '10 min');
CREATE TABLE history (noted timestamptz DEFAULT clock_timestamp(), day date DEFAULT CURRENT_DATE);
CREATE FUNCTION notes() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO history DEFAULT VALUES; RETURN NULL; END $$;
CREATE TRIGGER notes AFTER INSERT ON hold FOR EACH ROW EXECUTE FUNCTION notes();
CREATE FUNCTION is_over(t timestamptz, at timestamptz DEFAULT CURRENT_TIMESTAMP) RETURNS bool LANGUAGE plpgsql AS
    'BEGIN RETURN t < at AND t < now(); END'; GRANT EXECUTE ON FUNCTION is_over TO pg_monitor;
CREATE VIEW over WITH (security_barrier, check_option = local) AS SELECT *, now() FROM hold WHERE made < now();
GRANT SELECT ON over TO pg_monitor;
CREATE POLICY past ON hold USING (made < now()) WITH CHECK (made < CURRENT_TIMESTAMP);
ALTER TABLE hold ADD CONSTRAINT is_past CHECK (made <= now()); COMMENT ON CONSTRAINT is_past ON hold IS 'it''s past';
CREATE TABLE old_hold () INHERITS (hold);
ALTER TABLE hold ADD CONSTRAINT was_past CHECK (made <= now()) NO INHERIT NOT VALID;
CREATE DOMAIN past_day AS date CONSTRAINT past_day CHECK (VALUE <= CURRENT_DATE);
CREATE TRIGGER late AFTER UPDATE ON hold FOR EACH ROW WHEN (OLD.until < now()) EXECUTE FUNCTION notes();
CREATE RULE over_too AS ON DELETE TO over WHERE OLD.until < now() DO INSTEAD DELETE FROM hold WHERE made < now();
"""


@pytest.fixture
def sql(scenario_urls: tuple[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """With the tables in place before any setup."""
    with psycopg.connect(scenario_urls[0], autocommit=True) as connection:
        connection.execute(TABLES)
        try:
            yield connection
        finally:
            connection.execute(
                "DROP TABLE IF EXISTS hold, history CASCADE; DROP FUNCTION notes, is_over; DROP DOMAIN past_day"
            )


def an_old_hold(sql: Any) -> None:
    sql.execute("INSERT INTO hold (made, until) VALUES (now() - interval '1 h', now() - interval '50 min')")


def expires(locks: bool, sql: Any) -> None:
    with sql.transaction():
        found = sql.execute(
            "SELECT id FROM hold WHERE NOT paid AND made < now() - interval '10 min'" + " FOR UPDATE" * locks
        ).fetchall()
        for (one,) in found:
            sql.execute("DELETE FROM hold WHERE id = %s", [one])


def pays(sql: Any) -> bool:
    return bool(sql.execute("UPDATE hold SET paid = true WHERE id = 1").rowcount)


def what_is_paid_is_there(expired: None, paid: bool, sql: Any) -> bool:
    return not paid or sql.execute("SELECT count(*) FROM hold").fetchone() == (1,)


@pytest.mark.deep
@pytest.mark.parametrize(("locks", "verdict"), [(False, "violated"), (True, "kept")])
def test_what_is_older_than_ten_minutes_expires(
    trial: Trial, sql: psycopg.Connection[Any], locks: bool, verdict: str
) -> None:
    before = sql.execute(MADE).fetchall()
    workers = [worker("Expiry", expires, locks), worker("Ann", pays)]
    result = trial(workers, setup=an_old_hold, invariant=what_is_paid_is_there, control=False)
    assert (result.verdict, result.exhausted) == (verdict, True)
    assert sql.execute(MADE).fetchall() == before


def holds(sql: Any) -> None:
    sql.execute("INSERT INTO hold DEFAULT VALUES")


def counts_later(sql: Any) -> list[int]:
    """How many holds are old, are over; and how many notes are old, also of yesterday."""
    time.sleep(700)
    asked = (
        "SELECT count(*) FROM hold WHERE made < now() - interval '10 min'",
        "SELECT count(*) FROM hold WHERE until < timezone('utc', now())",
        "SELECT count(*) FROM history WHERE noted < clock_timestamp() - interval '10 min'",
        "SELECT count(*) FROM history WHERE day < CURRENT_DATE - 1",
    )
    return [sql.execute(each).fetchone()[0] for each in asked]


@pytest.mark.deep
def test_times_of_a_default_grow_old_with_the_virtual_clock(
    trial: Trial, sql: psycopg.Connection[Any]
) -> None:
    """Two are there from the setup: an old one, and its note, which is new. The one that is made meanwhile is old with
    its note, or neither is. (The counts are no transaction.)"""
    told = {(1, 1, 1, 0), (2, 2, 2, 0)}
    grows = lambda held, counted: tuple(counted) in told, "a time went by another clock"
    result = trial([holds, counts_later], setup=an_old_hold, invariant=grows, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)


@pytest.mark.deep(short=False)
def test_what_a_killed_search_has_left_is_put_back(trial: Trial, sql: psycopg.Connection[Any]) -> None:
    """In other words where a time was cut: CURRENT_TIMESTAMP::timestamptz(3)."""
    before = [(name, text) for name, text in sql.execute(MADE) if name != "until"]
    Shadowed(sql).make()
    altered = {name for name, text in sql.execute(MADE) if "explorer." in text}
    defaults, checks = {"made", "until", "noted", "day"}, {"is_past", "was_past", "past_day"}
    assert altered == {*defaults, "is_over", "over", "past", *checks, "late", "over_too"}
    trial([holds, holds], setup=an_old_hold, control=False)
    assert [(name, text) for name, text in sql.execute(MADE) if name != "until"] == before
    assert "explorer" not in str(sql.execute(MADE).fetchall())


def reads_the_view(sql: Any) -> None:
    sql.execute("SELECT count(*) FROM over")


@pytest.mark.deep
def test_a_session_that_still_reads_a_view_is_ended(
    trial: Trial, sql: psycopg.Connection[Any], scenario_urls: tuple[str, str]
) -> None:
    """Else the view stayed as it is during a search, and that never ended."""
    before = sql.execute(MADE).fetchall()
    with suppress(psycopg.OperationalError), psycopg.connect(scenario_urls[0]) as left:

        def left_open() -> bool:
            return left.execute("SELECT count(*) FROM over").fetchone() is not None

        trial([reads_the_view] * 2, invariant=left_open, control=False)
    assert sql.execute(MADE).fetchall() == before


def of_a_domain(sql: Any) -> None:
    sql.execute("CREATE DOMAIN moment AS timestamptz DEFAULT now(); CREATE TABLE dated (made moment, n int)")


def compares_it(sql: Any) -> None:
    sql.execute("DELETE FROM dated WHERE made < now() - interval '10 s'")


def test_the_default_of_a_domain_is_out_of_reach(trial: Trial) -> None:
    with pytest.raises(
        Mistake, match=r"inside of made, in DELETE FROM dated.*ask for the time in the command"
    ):
        trial([compares_it] * 2, setup=of_a_domain)


PAYMENT = """
DROP VIEW IF EXISTS last_payment; DROP TABLE IF EXISTS payment;
CREATE TABLE payment (id serial PRIMARY KEY, at timestamptz, made timestamptz NOT NULL DEFAULT {});
CREATE VIEW last_payment AS SELECT made AS since FROM payment ORDER BY id DESC LIMIT 1
"""


def payment(clock: str, sql: Any) -> None:
    sql.execute(PAYMENT.format(clock))


def pays_once(after: int, asks: str, sql: Any) -> None:
    """Twice within a minute is once too often. That is decided in Python."""
    time.sleep(after)
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        last, now = sql.execute(asks).fetchone(), datetime.now(UTC)
        if not last or now - last[-1] > timedelta(minutes=1):
            sql.execute("INSERT INTO payment (at) VALUES (%s)", [now])


def never_twice_within_a_minute(sql: Any) -> bool:
    times = [at for (at,) in sql.execute("SELECT at FROM payment ORDER BY at")]
    return all(later - earlier > timedelta(minutes=1) for earlier, later in pairwise(times))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("clock", "asks", "verdict"),
    [
        ("clock_timestamp()", "SELECT made FROM payment ORDER BY id DESC", "kept"),
        ("clock_timestamp()", "SELECT * FROM payment ORDER BY id DESC", "kept"),
        ("now()", "SELECT since FROM last_payment", "violated"),  # when its transaction began
        ("clock_timestamp()", "SELECT since FROM last_payment", "kept"),
        ("now()", "SELECT * FROM payment ORDER BY id DESC", "violated"),
    ],
)
def test_one_that_only_the_workers_compare(trial: Trial, clock: str, asks: str, verdict: str) -> None:
    """By the server's own clock, the row of the 100th second was of the first: who came next paid once more."""
    result = trial(
        [worker("Ann", pays_once, 100, asks), worker("Bob", pays_once, 0, asks)],
        setup=partial(payment, clock),
        invariant=(never_twice_within_a_minute, "paid twice"),
        control=False,
        pauses=1,
    )
    assert (result.verdict, result.exhausted) == (verdict, True)


def events(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS event, mark; CREATE TABLE mark (at timestamptz)")
    sql.execute(
        "CREATE TABLE event (id serial PRIMARY KEY, made timestamptz DEFAULT now(), until timestamptz)"
    )
    sql.execute("INSERT INTO mark VALUES ('2020-01-01')")


def events_and_one_without_end(sql: Any) -> None:
    events(sql)
    sql.execute("INSERT INTO event (made, until) VALUES ('2020-01-01', 'infinity')")


def happens(sql: Any) -> None:
    sql.execute("INSERT INTO event DEFAULT VALUES")


def polls(sql: Any) -> int:
    """What is newer than its mark."""
    with sql.transaction():
        (mark,) = sql.execute("SELECT at FROM mark FOR UPDATE").fetchone()
        new = sql.execute("SELECT made FROM event WHERE made > %s ORDER BY made", [mark]).fetchall()
        if new:
            sql.execute("UPDATE mark SET at = %s", new[-1])
    return len(new)


def test_a_command_compares_it_with_what_another_has_returned(trial: Trial) -> None:
    """By the server's own clock the mark was another one in each run: with more workers that was "not repeatable"."""
    result = trial([happens, polls], setup=events, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)
    assert any("the clock of postgres is virtual" in note for note in result.notes)


def test_a_time_without_an_end_is_no_lease(trial: Trial) -> None:
    result = trial([happens, polls], setup=events_and_one_without_end, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)


def entries(sql: Any) -> None:
    sql.execute("CREATE TABLE entry (id serial, balance int, made timestamptz NOT NULL DEFAULT now())")
    sql.execute("INSERT INTO entry (balance) VALUES (100)")


def posts(order: str, sql: Any) -> None:
    """now() is when the transaction began, which may be long before it has the lock."""
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(1)")
        (last,) = sql.execute(f"SELECT balance FROM entry ORDER BY {order} LIMIT 1").fetchone()
        sql.execute("INSERT INTO entry (balance) VALUES (%s)", [last + 1])


def every_posting_counts(sql: Any) -> bool:
    return bool(sql.execute("SELECT max(balance) - 100 = count(*) - 1 FROM entry").fetchone()[0])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("first", ["Ann", "Bob"])
@pytest.mark.parametrize(("order", "verdict"), [("made DESC, id DESC", "violated"), ("id DESC", "kept")])
def test_the_latest_row_by_the_begin_of_its_transaction_is_not_the_last(
    trial: Trial, first: str, order: str, verdict: str
) -> None:
    workers = {"Ann": worker("Ann", posts, order).then(posts, order), "Bob": worker("Bob", posts, order)}
    listed = [workers.pop(first), *workers.values()]
    result = trial(listed, setup=entries, invariant=every_posting_counts, control=False)
    assert (result.verdict, result.exhausted) == (verdict, True)
