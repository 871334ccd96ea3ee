"""Operations in a row write different times, as real clocks would: else right code that orders rows by them breaks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.ties import OLDER, TIE

Trial = Callable[..., Result]


def ledger(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS entry")
    sql.execute("CREATE TABLE entry (id serial PRIMARY KEY, amount int, balance int, made timestamptz)")
    sql.execute("INSERT INTO entry (amount, balance, made) VALUES (100, 100, %s)", [datetime.now(UTC)])


def posts(lock: bool, cut: bool, order: str, sql: Any) -> None:
    """A running balance. `cut`: its times are whole seconds."""
    with sql.transaction():
        if lock:
            sql.execute("SELECT pg_advisory_xact_lock(1)")
        (last,) = sql.execute(f"SELECT balance FROM entry ORDER BY {order} LIMIT 1").fetchone()
        made = datetime.now(UTC)
        given = [1, last + 1, made.replace(microsecond=0) if cut else made]
        sql.execute("INSERT INTO entry (amount, balance, made) VALUES (%s, %s, %s)", given)


def adds_up(sql: Any) -> bool:
    latest = sql.execute("SELECT balance FROM entry ORDER BY made DESC LIMIT 1").fetchone()
    return bool(latest == sql.execute("SELECT sum(amount)::int FROM entry").fetchone())


def account(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS account")
    sql.execute("CREATE TABLE account (balance int, updated timestamptz)")
    sql.execute("INSERT INTO account VALUES (100, %s)", [datetime.now(UTC)])


def deposits(sql: Any) -> None:
    """Optimistic locking by the time of the last change."""
    while True:
        balance, updated = sql.execute("SELECT balance, updated FROM account").fetchone()
        given = [balance + 1, datetime.now(UTC), updated]
        if sql.execute("UPDATE account SET balance = %s, updated = %s WHERE updated = %s", given).rowcount:
            return


BY_TIME = "made DESC, id"
POSTS = posts, True, False, BY_TIME
LAW = adds_up, "the latest balance is not the sum of all entries"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("workers", [2, 3])
def test_the_latest_row_is_the_one_that_was_written_last(trial: Trial, workers: int) -> None:
    assert trial([POSTS] * workers, setup=ledger, control=False, invariant=LAW).verdict == "kept"


@pytest.mark.deep
def test_a_time_is_a_version(trial: Trial) -> None:
    result = trial([(deposits,)] * 3, setup=account, control=False)
    assert (result.verdict, result.notes) == ("kept", ())


def test_without_the_lock_an_entry_is_lost(trial: Trial) -> None:
    result = trial([(posts, False, False, BY_TIME)] * 2, setup=ledger, control=False, invariant=LAW)
    assert (result.verdict, result.notes) == ("violated", ())


@pytest.mark.parametrize(("order", "noted"), [(BY_TIME, True), ("id DESC", False)])
def test_a_time_that_is_cut_to_the_second_is_a_tie(trial: Trial, order: str, noted: bool) -> None:
    """The third posting goes on from the first one's balance. It does so with real clocks too."""
    lost = lambda *all_: False, "an entry is lost"
    result = trial([(posts, True, True, order)] * 3, setup=ledger, control=False, invariant=lost)
    assert result.verdict == "violated"
    assert (TIE.format("made") in result.notes) == noted


def versioned(cut: str, sql: Any) -> None:
    """The server cuts the time: in the command, or in the column."""
    while True:
        balance, updated = sql.execute("SELECT balance, updated FROM account").fetchone()
        adds = f"UPDATE account SET balance = %s, updated = {cut} WHERE updated = %s"
        if sql.execute(adds, [balance + 1, updated]).rowcount:
            return


def of_seconds(sql: Any) -> None:
    account(sql)
    sql.execute("UPDATE account SET updated = '2020-01-01'")
    sql.execute("ALTER TABLE account ALTER updated TYPE timestamptz(0)")


def of_an_old_row(sql: Any) -> None:
    account(sql)
    sql.execute("UPDATE account SET updated = '2020-01-01'")


CUTS = [("date_trunc('second', now())", of_an_old_row), ("now()", of_seconds)]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("cut", "setup"), CUTS)
def test_a_version_that_the_server_cuts_is_a_tie_whenever_it_is_explored(
    trial: Trial, cut: str, setup: Any
) -> None:
    """By its real clock, the third call met the second one's time, or did not, as the second was over by then."""
    law = lambda sql: sql.execute("SELECT balance FROM account").fetchone()[0] > 101, "a deposit is lost"
    two = trial([(versioned, cut)] * 2, setup=setup, control=False, invariant=law)
    assert (two.verdict, OLDER.format("updated") in two.notes) == ("kept", True)
    law = lambda sql: sql.execute("SELECT balance FROM account").fetchone() == (103,), "a deposit is lost"
    three = trial([(versioned, cut)] * 3, setup=setup, control=False, invariant=law)
    assert three.verdict == "violated"
    assert any("is virtual" in note for note in three.notes)


def last_write_wins(sql: Any) -> None:
    made = datetime.now(UTC)
    sql.execute("UPDATE account SET balance = balance + 1, updated = %s WHERE updated < %s", [made, made])


def last_write_wins_by_the_server(sql: Any) -> None:
    with sql.transaction():
        sql.execute("SELECT 1")
        sql.execute("UPDATE account SET balance = balance + 1, updated = now() WHERE updated < now()")


def compares_in_python(after_the_lock: bool, sql: Any) -> None:
    made = datetime.now(UTC)
    with sql.transaction():
        (updated,) = sql.execute("SELECT updated FROM account FOR UPDATE").fetchone()
        made = datetime.now(UTC) if after_the_lock else made
        if updated <= made:
            sql.execute("UPDATE account SET balance = balance + 1, updated = %s", [made])


def looks_after_its_read(sql: Any) -> None:
    """Both read before either looks: so whoever looks first is open then, too."""
    before = sql.execute("SELECT count(*) FROM account WHERE balance > 100").fetchone()
    made = datetime.now(UTC)
    sql.execute(
        "UPDATE account SET balance = balance + 1, updated = %s WHERE updated <= %s AND %s <= 1",
        [made, made, *before],
    )


def wins_in_redis(redis: Any) -> None:
    """`n` of the latest call, by a script: nothing comes between its commands."""
    redis.eval(
        "if tonumber(redis.call('HGET', 'account', 'at')) <= tonumber(ARGV[1]) then "
        "redis.call('HINCRBY', 'account', 'n', 1) redis.call('HSET', 'account', 'at', ARGV[1]) end",
        0,
        f"{time.time():.6f}",
    )


async def at_once(url: str) -> None:
    async def wins() -> None:
        made = datetime.now(UTC)
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute(
                "UPDATE account SET balance = balance + 1, updated = %s WHERE updated <= %s", [made, made]
            )

    await asyncio.gather(wins(), wins())


async def changes_and_looks(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("UPDATE account SET balance = 101")
        made = datetime.now(UTC)
        await connection.execute("UPDATE account SET updated = %s WHERE updated < %s", [made, made])


def looks_once_it_is_changed(sql: Any) -> int:
    """It believes that the other one has looked by then."""
    changed = sql.execute("SELECT balance > 100 FROM account").fetchone()[0]
    made = datetime.now(UTC)
    given = [made, changed, made]
    return (
        int(sql.execute("UPDATE account SET updated = %s WHERE %s AND updated < %s", given).rowcount)
        or -changed
    )


BOTH = lambda sql: sql.execute("SELECT balance FROM account").fetchone() == (102,), "a deposit is lost"
BOTH_IN_REDIS = lambda redis: redis.hget("account", "n") == b"2", "a deposit is lost"


@pytest.mark.parametrize(
    "operation",
    [
        (last_write_wins,),
        (last_write_wins_by_the_server,),
        (compares_in_python, False),
        (looks_after_its_read,),
    ],
)
def test_the_last_write_wins_and_may_not_be_the_later_call(trial: Trial, operation: tuple[Any, ...]) -> None:
    result = trial([operation] * 2, setup=account, control=False, invariant=BOTH)
    assert (result.verdict, result.exhausted) == ("violated", True)
    assert TIE.format("updated") not in result.notes
    looks = [move.reply[-6:] for move in result.schedule.moves if move.kind == "look"]
    assert looks == ["000000", "000001"][: len(looks)]


def test_a_clock_that_is_read_under_the_lock_orders_as_the_lock_does(trial: Trial) -> None:
    result = trial([(compares_in_python, True)] * 2, setup=account, control=False, invariant=BOTH)
    assert (result.verdict, result.exhausted) == ("kept", True)


def test_a_coroutine_that_is_alone_looks_when_it_likes(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    workers = [(changes_and_looks, scenario_urls[0]), (looks_once_it_is_changed,)]
    later = lambda changer, other: other >= 0, "the later look was taken for the earlier one"
    result = trial(workers, setup=account, control=False, invariant=later)
    assert (result.verdict, result.exhausted) == ("violated", True)


def test_two_coroutines_of_one_worker_look_one_after_the_other(
    trial: Trial, scenario_urls: tuple[str, str]
) -> None:
    result = trial([(at_once, scenario_urls[0])], setup=account, control=False, invariant=BOTH)
    assert result.verdict == "violated"


def test_the_last_write_wins_in_redis(trial: Trial) -> None:
    result = trial(
        [(wins_in_redis,)] * 2,
        setup=lambda redis: redis.hset("account", mapping={"n": 0, "at": 0}),
        control=False,
        invariant=BOTH_IN_REDIS,
    )
    assert (result.verdict, result.exhausted) == ("violated", True)


def deposits_by_the_server(sql: Any) -> bool:
    """Optimistic locking by the server's time of the last change."""
    for _ in range(3):
        balance, updated = sql.execute("SELECT balance, updated FROM account").fetchone()
        given = [balance + 1, updated]
        if sql.execute("UPDATE account SET balance = %s, updated = now() WHERE updated = %s", given).rowcount:
            return True
    return False


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.deep)])
def test_a_time_of_the_server_is_a_version(trial: Trial, workers: int) -> None:
    """It decides, so the server's clock is virtual: real times differ in each run."""
    some = (
        lambda sql: sql.execute("SELECT balance > 100 OR true FROM account").fetchone()[0],
        "a deposit is lost",
    )
    operations = [(deposits_by_the_server,)] * workers
    result = trial(operations, setup=account, control=False, invariant=some, crashes=1)
    assert (result.verdict, result.exhausted) == ("kept", True)
    assert "the clock of postgres is virtual: shadowed functions answer in its place" in result.notes


def writes_an_entry(sql: Any) -> None:
    sql.execute("INSERT INTO entry (amount, balance, made) VALUES (1, 1, %s)", [datetime.now(UTC)])


def cleans_up(sql: Any) -> Any:
    """Returns how many were older than its look. Only a DELETE compares the time."""
    return sql.execute("DELETE FROM entry WHERE made < %s AND amount = 1", [datetime.now(UTC)]).rowcount


def writes_and_cleans_up(sql: Any) -> Any:
    writes_an_entry(sql)
    return cleans_up(sql)


def cleans_up_by_the_server(sql: Any) -> Any:
    sql.execute("INSERT INTO entry (amount, balance, made) VALUES (1, 1, now())")
    return sql.execute("DELETE FROM entry WHERE made < now() AND amount = 1").rowcount


def cleans_up_in_redis(redis: Any) -> Any:
    redis.zadd("moments", {"mine": round(time.time(), 6)})
    return redis.zremrangebyscore("moments", 0, f"({time.time():.6f}")


def reads_the_ledger(sql: Any) -> None:
    sql.execute("SELECT balance FROM entry")


@pytest.mark.parametrize(
    "operations",
    [
        [(writes_an_entry,), (cleans_up,)],
        [(writes_and_cleans_up,), (reads_the_ledger,)],
        [worker("A", writes_an_entry).then(cleans_up), (reads_the_ledger,)],
        [(cleans_up_by_the_server,), (reads_the_ledger,)],
        [(cleans_up_in_redis,), (reads_the_ledger,)],
    ],
)
def test_what_was_written_before_a_look_is_older(trial: Trial, operations: Any) -> None:
    nothing = lambda *results: "1" not in repr(results), "something was older"
    result = trial(operations, setup=ledger, control=False, invariant=nothing)
    assert result.verdict == "violated"


def writes_its_time_in_redis(redis: Any) -> None:
    redis.set("at", f"{time.time():.6f}")


def compares_what_redis_holds(redis: Any) -> bool:
    """Its look may come before the other one's, which it reads then."""
    looked = time.time()
    return float(redis.get("at")) <= looked


def test_a_time_that_is_read_from_redis_may_be_later_than_a_look(trial: Trial) -> None:
    result = trial(
        [(writes_its_time_in_redis,), (compares_what_redis_holds,)],
        setup=lambda redis: redis.set("at", 0),
        control=False,
        invariant=lambda wrote, earlier: earlier is not False,
    )
    assert result.verdict == "violated"


def is_written_by_the_server(sql: Any) -> None:
    sql.execute("INSERT INTO entry (amount, balance, made) VALUES (1, 1, now())")


def counts_by_its_own_clock(sql: Any) -> Any:
    made = datetime.now(UTC)
    return sql.execute("SELECT count(*) FROM entry WHERE made < %s AND amount = 1", [made]).fetchone()[0]


def test_the_servers_clock_and_a_workers_agree(trial: Trial) -> None:
    """The server wrote the real time, so the answer depended on how long the search had taken by then."""
    result = trial(
        [(is_written_by_the_server,), (counts_by_its_own_clock,)],
        setup=ledger,
        control=False,
        invariant=lambda wrote, older: older != 1,
    )
    assert (result.verdict, result.exhausted) == ("violated", True)
