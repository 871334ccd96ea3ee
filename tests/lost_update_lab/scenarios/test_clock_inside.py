"""PostgreSQL's clock decides where no command shows it: in a trigger, a function, a view, a check. It is
virtual there, or that is refused. By the real clock, no lease of minutes ends in a search of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest

from lost_update_lab import Mistake, Result, worker
from lost_update_lab.model.bounds import LEAST, Bounds

Trial = Callable[..., Result]
Take = Callable[[Any, str], bool]

TABLES = """
DROP TABLE IF EXISTS hold, sale, dated CASCADE;
CREATE TABLE hold (seat int, who text, until timestamptz); CREATE TABLE sale (who text);
INSERT INTO hold VALUES (1, NULL, '2020-01-01')
"""
TAKES = "UPDATE hold SET who = {who}, until = now() + interval '10 min' WHERE {free}"


def acquires(
    kind: str = "FUNCTION",
    argument: str = "",
    returns: str = "RETURNS bool",
    declares: str = "",
    now: str = "now()",
    ends: str = "RETURN FOUND;",
) -> str:
    """`now`: what the end of the lease is compared with."""
    takes = TAKES.format(who="w", free=f"until < {now}")
    return (
        f"CREATE {kind} acquire(w text{argument}) {returns} LANGUAGE plpgsql AS $$ {declares} "
        f"BEGIN {takes}; {ends} END $$"
    )


def by_a_command(text: str, sql: Any, who: str) -> bool:
    """Refused by a trigger, or without a row: somebody else holds it."""
    try:
        return bool(sql.execute(text, {"who": who}).rowcount)
    except psycopg.Error:
        return False


def by_a_call(text: str, sql: Any, who: str) -> bool:
    return bool(sql.execute(text, {"who": who}).fetchone()[0])


def by_a_look(text: str, sql: Any, who: str) -> bool:
    with sql.transaction():
        free = sql.execute(text).fetchone()
        if free:
            sql.execute(TAKES.format(who="%s", free="true"), [who])
    return bool(free)


def as_a_guest(sql: Any, who: str) -> bool:
    """Who is no owner sees what the policy lets them see."""
    with sql.transaction():
        sql.execute("SET LOCAL ROLE pg_monitor")
        return by_a_command(TAKES.format(who="%(who)s", free="true"), sql, who)


NOTES = partial(by_a_command, TAKES.format(who="%(who)s, was = until", free="true"))
NOTES_NOTHING = partial(by_a_command, TAKES.format(who="%(who)s", free="true"))
CALLS = partial(by_a_call, "SELECT acquire(%(who)s)")
WAYS: dict[str, tuple[str, Take]] = {
    "a trigger": (
        "CREATE FUNCTION checks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF OLD.until > now() THEN RAISE EXCEPTION 'held'; END IF; NEW.until := now() + interval '10 min'; RETURN NEW; "
        "END $$; CREATE TRIGGER checks BEFORE UPDATE ON hold FOR EACH ROW EXECUTE FUNCTION checks()",
        partial(by_a_command, "UPDATE hold SET who = %(who)s"),
    ),
    "a function": (acquires(), CALLS),
    "a variable": (acquires(declares="DECLARE t timestamptz := clock_timestamp();", now="t"), CALLS),
    "an argument": (acquires(argument=", t timestamptz DEFAULT now()", now="t"), CALLS),
    "a procedure": (
        acquires(kind="PROCEDURE", argument=", INOUT got bool", returns="", ends="got := FOUND;"),
        partial(by_a_call, "CALL acquire(%(who)s, NULL)"),
    ),
    "a function that PostgreSQL has read": (
        "CREATE FUNCTION is_over(t timestamptz) RETURNS bool LANGUAGE sql STABLE RETURN t < now()",
        partial(by_a_command, TAKES.format(who="%(who)s", free="is_over(until)")),
    ),
    "a view": (
        "CREATE VIEW free WITH (security_barrier) AS SELECT now(), * FROM hold WHERE until < now()",
        partial(by_a_look, "SELECT 1 FROM free FOR UPDATE"),
    ),
    "a policy": (
        "ALTER TABLE hold ENABLE ROW LEVEL SECURITY; GRANT ALL ON hold TO pg_monitor; "
        "CREATE POLICY free ON hold USING (until < now()) WITH CHECK (true)",
        as_a_guest,
    ),
    "a check": ("ALTER TABLE hold ADD was timestamptz CHECK (was < now())", NOTES),
    "a check by a function": (
        "CREATE FUNCTION is_over(t timestamptz) RETURNS bool LANGUAGE sql STABLE RETURN t < now(); "
        "ALTER TABLE hold ADD was timestamptz, ADD CHECK (is_over(was)) NOT VALID",
        NOTES,
    ),
    "a domain": (
        "CREATE DOMAIN past AS timestamptz CHECK (VALUE < now()); ALTER TABLE hold ADD was past",
        NOTES,
    ),
    "a trigger's condition": (
        "CREATE FUNCTION checks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; "
        "CREATE TRIGGER checks BEFORE UPDATE ON hold FOR EACH ROW WHEN (OLD.until > now()) EXECUTE FUNCTION checks()",
        NOTES_NOTHING,
    ),
    "a rule": (
        "CREATE RULE notes AS ON UPDATE TO hold WHERE OLD.until > now() DO INSTEAD NOTHING",
        NOTES_NOTHING,
    ),
}


def made(how: str, sql: Any) -> None:
    sql.execute("DROP FUNCTION IF EXISTS checks, is_over CASCADE; DROP DOMAIN IF EXISTS past CASCADE")
    sql.execute("DROP ROUTINE IF EXISTS acquire")
    sql.execute(TABLES)
    sql.execute(how)


def sells(take: Take, after: int, works: int, who: str, sql: Any) -> None:
    time.sleep(after)
    if take(sql, who):
        time.sleep(works)
        if not sql.execute("SELECT 1 FROM sale").fetchone():
            time.sleep(1)
            sql.execute("INSERT INTO sale VALUES (%s)", [who])


def sold_once(sql: Any) -> bool:
    return bool(sql.execute("SELECT count(*) <= 1 FROM sale").fetchone()[0])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("way", WAYS)
def test_a_lease_ends_that_no_command_shows(trial: Trial, way: str) -> None:
    """Of ten minutes. Bob comes after eleven: Ann is about to sell. Or she is done."""
    how, take = WAYS[way]
    for works, verdict in ((11 * 60, "violated"), (5 * 60, "kept")):
        workers = [worker("Ann", sells, take, 0, works, "Ann"), worker("Bob", sells, take, 11 * 60, 0, "Bob")]
        result = trial(workers, setup=partial(made, how), invariant=(sold_once, "sold twice"), control=False)
        assert (result.verdict, result.exhausted) == (verdict, True), works


REFUSED = {
    "a text that a function executes": (
        "CREATE FUNCTION checks() RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
        "EXECUTE 'UPDATE hold SET seat = 2 WHERE until < now()'; END $$",
        "SELECT checks()",
    ),
    "a sleep in a function": (
        "CREATE FUNCTION checks() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); END $$",
        "SELECT checks()",
    ),
    "a block": ("SELECT", "DO $$ BEGIN UPDATE hold SET seat = 2 WHERE until < now(); END $$"),
}


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("place", REFUSED)
def test_what_cannot_be_moved_is_refused(trial: Trial, place: str) -> None:
    how, text = REFUSED[place]
    with pytest.raises(Mistake, match=r"own clock decides there.* \(inside of .*and not inside of a domain"):
        trial([lambda sql: sql.execute(text)] * 2, setup=partial(made, how))


def test_a_look_at_a_table_with_a_check_asks_no_clock(trial: Trial) -> None:
    how, _ = WAYS["a check"]
    looks = lambda sql: sql.execute("SELECT who FROM hold").fetchone()  # noqa: E731
    result = trial([looks] * 2, setup=partial(made, how), control=False)
    assert result.verdict == "kept"
    assert not any("virtual" in note for note in result.notes)


def a_show(sql: Any) -> None:
    sql.execute(
        "DROP TABLE IF EXISTS show; CREATE TABLE show (starts timestamptz CHECK (starts > now()), seats int)"
    )
    sql.execute("INSERT INTO show VALUES (now() + interval '10 min', 2)")


def books(after: int, sql: Any) -> bool:
    time.sleep(after)
    return by_a_command("UPDATE show SET seats = seats - 1", sql, "")


def nobody_is_late(early: bool, late: bool, sql: Any) -> bool:
    return early and not late and sql.execute("SELECT seats FROM show").fetchone() == (1,)


def test_a_row_is_put_back_that_its_check_would_refuse_by_now(trial: Trial) -> None:
    workers = [worker("Ann", books, 60), worker("Bob", books, 11 * 60)]
    result = trial(workers, setup=a_show, invariant=nobody_is_late, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)


def test_a_search_that_begins_again_has_what_is_left_of_its_budget(trial: Trial) -> None:
    """The first run finds that a check asks the clock. The setup runs again, then."""
    times: list[float] = []

    def setup(sql: Any) -> None:
        times.append(time.perf_counter())
        a_show(sql)

    result = trial([worker("Ann", books, 60), worker("Bob", books, 0)], setup=setup, control=False)
    first, again = times
    assert result.seconds > again - first


def test_at_its_end_there_are_some_seconds_left() -> None:
    bounds, now = Bounds(budget=60), time.perf_counter()
    assert bounds.again(now).begun == now
    earliest, late, latest = time.perf_counter(), bounds.again(now - 90).begun, time.perf_counter()
    assert earliest <= late + 60 - LEAST <= latest
    assert Bounds(budget=2).again(now - 90).begun >= now
    assert Bounds().again(now).begun == 0
