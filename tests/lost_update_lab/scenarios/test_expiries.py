"""The setup and the workers are on one line of time: what the setup writes as valid for an hour is valid for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from subprocess import CompletedProcess
from typing import Any

import pytest

from lost_update_lab import Result, worker
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.scenarios.explore import REPLAY

Trial = Callable[..., Result]
TWICE = (lambda ann, bob: (ann, bob) != ("ok", "ok"), "redeemed twice")
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def afterwards_it_is_as_before() -> Iterator[None]:
    before = Epoch.shows
    yield
    assert Epoch.shows == before


def by_python(sql: Any, valid: timedelta) -> None:
    sql.execute("INSERT INTO coupon VALUES (1, %s)", [datetime.now(UTC) + valid])


def by_the_server(sql: Any, valid: timedelta) -> None:
    sql.execute("INSERT INTO coupon VALUES (1, now() + %s)", [valid])


def a_coupon(writes: Callable[..., None] = by_python, valid: timedelta = HOUR) -> Callable[..., None]:
    def setup(sql: Any) -> None:
        sql.execute("CREATE TABLE coupon (uses int, expires timestamptz)")
        writes(sql, valid)

    return setup


def checks_in_python(sql: Any) -> str:
    uses, expires = sql.execute("SELECT uses, expires FROM coupon").fetchone()
    if expires < datetime.now(UTC):
        return "expired"
    return _used(sql, uses)


def checks_in_sql(sql: Any) -> str:
    found = sql.execute("SELECT uses FROM coupon WHERE expires > now()").fetchone()
    return _used(sql, *found) if found else "expired"


def at_once(sql: Any) -> str:
    query = "UPDATE coupon SET uses = uses - 1 WHERE uses > 0 AND expires > now() RETURNING uses"
    return "ok" if sql.execute(query).fetchone() else "refused"


def _used(sql: Any, uses: int) -> str:
    if uses < 1:
        return "used up"
    sql.execute("UPDATE coupon SET uses = %s", [uses - 1])
    return "ok"


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("checks", [checks_in_python, checks_in_sql])
@pytest.mark.parametrize("writes", [by_python, by_the_server])
def test_a_coupon_that_is_valid_for_an_hour_is_redeemed_twice(
    trial: Trial, writes: Callable[..., None], checks: Callable[..., str]
) -> None:
    result = trial([checks] * 2, setup=a_coupon(writes), invariant=TWICE)
    assert (result.verdict, result.sentence) == ("violated", TWICE[1]), str(result)


def test_and_once_if_one_command_checks_and_writes(trial: Trial) -> None:
    result = trial([at_once] * 2, setup=a_coupon(), invariant=TWICE)
    assert (result.verdict, result.exhausted, result.notes) == (
        "kept",
        True,
        ("the clock of postgres is virtual: shadowed functions answer in its place",),
    )


@pytest.mark.parametrize("checks", [checks_in_python, checks_in_sql])
def test_one_whose_hour_is_over_is_expired_for_them_too(trial: Trial, checks: Callable[..., str]) -> None:
    expired = (lambda ann, bob: {ann, bob} == {"expired"}, "it was over")
    assert trial([checks] * 2, setup=a_coupon(valid=-HOUR), invariant=expired, control=False).kept


def test_a_pause_may_last_past_its_end(trial: Trial) -> None:
    seen = (lambda ann, bob: "expired" not in (ann, bob), "it was over")
    result = trial([at_its_end] * 2, setup=a_coupon(), invariant=seen, pauses=1, control=False)
    assert (result.verdict, result.sentence) == ("violated", seen[1]), str(result)


def at_its_end(sql: Any) -> str:
    sql.execute("SELECT uses FROM coupon")
    return checks_in_python(sql)


@pytest.mark.deep
def test_what_the_setup_writes_as_now_is_not_later_than_that_of_the_workers(trial: Trial) -> None:
    """And hardly earlier, whichever exploration of the process it is."""

    def setup(sql: Any, redis: Any) -> None:
        sql.execute("CREATE TABLE event (at timestamptz)")
        sql.execute("INSERT INTO event VALUES (now()), (clock_timestamp()), (%s)", [datetime.now(UTC)])
        redis.set("at", time.time())
        redis.xadd("events", {"n": 1})

    def ages(sql: Any, redis: Any) -> list[float]:
        rows = sql.execute("SELECT extract(epoch FROM at)::float FROM event").fetchall()
        written = [*(row[0] for row in rows), float(redis.get("at"))]
        stream, _ = redis.xadd("events", {"n": 2}).split(b"-")
        clocks = [time.time(), datetime.now(UTC).timestamp(), redis.time()[0], int(stream) / 1000]
        clocks += sql.execute("SELECT extract(epoch FROM clock_timestamp())::float").fetchone()
        return [now - at for now in clocks for at in written]

    def recent(ann: list[float], bob: list[float]) -> bool:
        return all(0 <= age < 30 for age in [*ann, *bob])

    for _ in range(2):
        assert trial([ages] * 2, setup=setup, invariant=recent, control=False).kept


def test_in_redis(trial: Trial) -> None:
    def setup(redis: Any) -> None:
        redis.hset("coupon", mapping={"uses": 1, "expires": time.time() + 3600})

    def redeem(redis: Any) -> str:
        coupon = redis.hgetall("coupon")
        if float(coupon[b"expires"]) < time.time():
            return "expired"
        if int(coupon[b"uses"]) < 1:
            return "used up"
        redis.hincrby("coupon", "uses", -1)
        return "ok"

    assert trial([redeem] * 2, setup=setup, invariant=TWICE).sentence == TWICE[1]


@pytest.mark.deep
def test_its_schedule_has_the_same_id_whenever_it_is_explored(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trial([checks_in_sql] * 2, setup=a_coupon(), invariant=TWICE)
    time.sleep(1.1)
    again = trial([checks_in_sql] * 2, setup=a_coupon(), invariant=TWICE)
    assert (first.id, first.schedules) == (again.id, again.schedules)
    monkeypatch.setenv(REPLAY, first.id)
    replayed = trial([checks_in_sql] * 2, setup=a_coupon(), invariant=TWICE)
    assert (replayed.replayed, replayed.verdict, replayed.id) == (True, "violated", first.id)


@pytest.mark.deep
def test_a_session_of_django_that_the_setup_has_made(project: Callable[..., CompletedProcess[str]]) -> None:
    done = project("django_session.py")
    assert done.stdout.strip() == "violated True", done.stderr


def test_explorations_one_after_another_or_inside_of_each_other() -> None:
    usual = Epoch.shows
    with Epoch.begins():
        outer = Epoch.shows
        assert outer.is_integer()
        assert -1 <= time.time() - outer < 30
        time.sleep(1.1)
        with suppress(ValueError), Epoch.begins():
            assert Epoch.shows > outer
            raise ValueError
        assert Epoch.shows == outer
    assert Epoch.shows == usual


@pytest.mark.parametrize("log", ["", "at timestamptz DEFAULT now()"])
def test_times_of_the_servers_own_clock_are_no_leases(trial: Trial, log: str) -> None:
    """They are later than the workers' time. As leases that end, each would be another one in each schedule."""

    def setup(sql: Any) -> None:
        sql.execute("CREATE TABLE lease (who int, until timestamptz)")
        sql.execute("INSERT INTO lease VALUES (0, now())")
        sql.execute(f"CREATE TABLE log ({log})")

    def hold(sql: Any, who: int) -> None:
        take = "UPDATE lease SET who = %s, until = now() + interval '10 s' WHERE until < now()"
        while not sql.execute(take, [who]).rowcount:
            time.sleep(1)
        sql.execute("INSERT INTO log DEFAULT VALUES")
        time.sleep(2)
        sql.execute("UPDATE lease SET until = now() WHERE who = %s", [who])

    workers = [worker("Ann", hold, who=1), worker("Bob", hold, who=2)]
    result = trial(workers, setup=setup, invariant=(lambda: True, "ends"), control=False)
    assert (result.verdict, result.exhausted, result.schedules) == ("kept", True, 10), str(result)
