"""A command that is cancelled while it is under way: was it executed, or not? Both are tried where both may be.

Time-outs of payment code (`asyncio.wait_for`, `asyncio.timeout`), followed by a retry, and tasks that end each other.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import psycopg
import pytest
import redis
from redis.asyncio import Redis

from lost_update_lab import Result, worker

Trial = Callable[..., Result]
SCHEMA = """
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE booking (key text PRIMARY KEY, amount int NOT NULL);
INSERT INTO account VALUES (1, 100);
"""
READ = "SELECT balance FROM account WHERE id = 1 FOR UPDATE"
ADD = "UPDATE account SET balance = balance + 10 WHERE id = 1"
#: it reads and writes, so it is executed, and then commits
LOOKS = "UPDATE account SET balance = balance + (SELECT 10) WHERE id = 1"
ONCE = f"""WITH new AS (INSERT INTO booking VALUES (%s, 10) ON CONFLICT DO NOTHING RETURNING key)
{ADD} AND EXISTS (SELECT FROM new)"""


def one_account() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        sql.execute(SCHEMA)


def balance() -> int:
    with psycopg.connect(os.environ["DATABASE_URL"]) as sql:
        row = sql.execute("SELECT balance FROM account").fetchone()
    assert row
    return int(row[0])


async def connected(autocommit: bool = False) -> Any:
    return await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=autocommit)


async def holds(seconds: float) -> None:
    """Somebody else's transaction, which takes its time, and changes nothing."""
    async with await connected() as db:
        await db.execute(READ)
        await asyncio.sleep(seconds)


def replays(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, result: Result, *args: Any, **keywords: Any
) -> None:
    """The counterexample comes again, by its id."""
    assert result.schedule
    assert result.schedule.confirmed == 10
    monkeypatch.setenv("LOST_UPDATE_LAB_REPLAY", result.id)
    again = trial(*args, **keywords)
    assert again.replayed
    assert (again.verdict, again.id) == (result.verdict, result.id)


# -- a transaction ----------------------------------------------------------------------------------------------------


async def book() -> str:
    async with await connected() as db:
        row = await (await db.execute(READ)).fetchone()
        assert row
        await db.execute("UPDATE account SET balance = %s WHERE id = 1", [row[0] + 10])
    return "booked"


async def book_or_try_again(seconds: float) -> str:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await book()
    return await book()


@pytest.mark.deep
def test_a_read_that_waits_for_a_row_is_given_up_and_tried_again(trial: Trial) -> None:
    """Its transaction has done nothing when the time-out comes."""
    booked = lambda: balance() == 110, "a booking is lost, or made twice"
    workers = [worker("Ann", book_or_try_again, 2), worker("Bob", holds, 10)]
    result = trial(workers, setup=one_account, invariant=booked)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


@pytest.mark.deep
def test_a_transaction_that_is_given_up_in_its_commit(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time-out comes before it is over, and the COMMIT has been sent."""
    how = {"setup": one_account, "invariant": (lambda: balance() == 110, "a booking is lost, or made twice")}
    result = trial([(book_or_try_again, 0.05)], **how)
    assert result.verdict == "violated", str(result)
    assert balance_at_the_end(result) == 120
    replays(trial, monkeypatch, result, [(book_or_try_again, 0.05)], **how)


def balance_at_the_end(result: Result) -> int:
    assert result.schedule
    changes = [change for move in result.schedule.moves for change in move.changes if ".balance: " in change]
    return int(changes[-1].rpartition(" ")[2])


# -- a single command -------------------------------------------------------------------------------------------------


async def add(query: str) -> None:
    async with await connected(autocommit=True) as db:
        await db.execute(query, ["key"] if "%s" in query else None)


async def add_or_try_again(query: str, seconds: float) -> None:
    try:
        await asyncio.wait_for(add(query), seconds)
    except TimeoutError:
        await add(query)


@pytest.mark.deep
@pytest.mark.parametrize(("query", "verdict"), [(ADD, "violated"), (LOOKS, "violated"), (ONCE, "kept")])
def test_a_write_that_may_have_been_done(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, query: str, verdict: str
) -> None:
    """The row is let go just when the time is over: was it in time? With an idempotency key that does not matter."""
    workers = [worker("Ann", add_or_try_again, query, 2), worker("Bob", holds, 2)]
    how = {"setup": one_account, "invariant": (lambda: balance() == 110, "it is booked twice")}
    result = trial(workers, **how)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    if verdict == "violated":
        replays(trial, monkeypatch, result, workers, **how)


# -- Redis ------------------------------------------------------------------------------------------------------------


async def count(keys: Any) -> None:
    await keys.incrby("count", 10)


async def count_or_try_again(seconds: float) -> None:
    async with Redis.from_url(os.environ["REDIS_URL"]) as keys:
        try:
            await asyncio.wait_for(count(keys), seconds)
        except TimeoutError:
            await count(keys)


def counted() -> bool:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        return int(keys.get("count") or 0) == 10


@pytest.mark.deep
def test_redis_executes_what_was_sent(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"invariant": (counted, "it is counted twice")}
    result = trial([(count_or_try_again, 0.05)], **how)
    assert result.verdict == "violated", str(result)
    assert "is cancelled, and this is under way: INCRBY count 10" in str(result)
    replays(trial, monkeypatch, result, [(count_or_try_again, 0.05)], **how)


async def count_twice_at_once(seconds: float) -> None:
    """All is sent in one piece, so all of it is executed, or nothing yet."""
    async with Redis.from_url(os.environ["REDIS_URL"]) as keys, keys.pipeline() as both:
        with suppress(TimeoutError):
            await asyncio.wait_for(both.incrby("count", 4).incrby("count", 6).execute(), seconds)


def test_a_transaction_of_redis_is_whole(trial: Trial) -> None:
    how = {"invariant": (counted, "not all was counted")}
    result = trial([(count_twice_at_once, 0.05)], **how)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


async def take_a_job(seconds: float) -> str:
    async with Redis.from_url(os.environ["REDIS_URL"], decode_responses=True) as keys:
        try:
            _, job = await asyncio.wait_for(keys.blpop(["jobs"]), seconds)
        except TimeoutError:
            return ""
        return str(job)


async def bring_a_job(seconds: float) -> None:
    await asyncio.sleep(seconds)
    async with Redis.from_url(os.environ["REDIS_URL"]) as keys:
        await keys.rpush("jobs", "job")


def taken_or_there(taken: str, _: None) -> bool:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        return (taken == "job") != bool(keys.llen("jobs"))


@pytest.mark.deep
@pytest.mark.parametrize(("seconds", "verdict"), [(2, "violated"), (10, "kept")])
def test_a_pop_that_is_given_up(trial: Trial, seconds: float, verdict: str) -> None:
    """A job that comes at that very moment is taken by a client that is gone. A later one stays."""
    workers = [worker("Ann", take_a_job, 2), worker("Bob", bring_a_job, seconds)]
    result = trial(workers, invariant=(taken_or_there, "the job is lost"), control=False)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


# -- tasks that end each other ----------------------------------------------------------------------------------------


class Refused(Exception):
    pass


async def one_refuses() -> str:
    """The group cancels the booking. The caller believes that nothing was booked."""

    async def refuses() -> None:
        async with Redis.from_url(os.environ["REDIS_URL"]) as keys:
            await keys.get("stock")
        raise Refused

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(add(ADD))
            tasks.create_task(refuses())
    except* Refused:
        pass
    return "refused"


@pytest.mark.deep
def test_a_group_whose_one_task_fails(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"setup": one_account, "invariant": (lambda: balance() == 100, "refused, and booked")}
    result = trial([one_refuses], **how)
    assert result.verdict == "violated", str(result)
    replays(trial, monkeypatch, result, [one_refuses], **how)
    monkeypatch.delenv("LOST_UPDATE_LAB_REPLAY")
    either = lambda: balance() in (100, 110), "something else"
    kept = trial([one_refuses], setup=one_account, invariant=either)
    assert (kept.verdict, kept.exhausted) == ("kept", True), str(kept)


@pytest.mark.deep
@pytest.mark.parametrize(("query", "verdict"), [(ADD, "violated"), (ONCE, "kept")])
def test_a_pause_past_its_own_time_out(trial: Trial, query: str, verdict: str) -> None:
    """A command that waits for nobody is answered at once, if nothing goes wrong: no time-out of 2 s comes first."""
    how = {"setup": one_account, "invariant": (lambda: balance() == 110, "it is booked twice")}
    assert trial([(add_or_try_again, query, 2)], **how).kept
    result = trial([(add_or_try_again, query, 2)], **how, pauses=1)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


# -- threads ----------------------------------------------------------------------------------------------------------


def add_unless_stopped(how: str) -> str:
    """Another thread of the process stops the command. Only the command itself knows whether it was in time."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
        stopper = threading.Timer(2, sql.cancel if how == "cancel" else sql.cancel_safe)
        stopper.start()
        try:
            sql.execute(ADD)
        except psycopg.errors.QueryCanceled:
            return "stopped"
        finally:
            stopper.join()
    return "done"


@pytest.mark.deep
@pytest.mark.parametrize("how", ["cancel", "cancel_safe"])
def test_a_thread_that_cancels(trial: Trial, how: str) -> None:
    workers = [worker("Ann", add_unless_stopped, how), worker("Bob", holds, 2)]
    told = (
        lambda ann, bob: (ann, balance()) in (("stopped", 100), ("done", 110)),
        "Ann was told something else",
    )
    result = trial(workers, setup=one_account, invariant=told, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)
    for always in (lambda ann, _: ann == "stopped", lambda ann, _: ann == "done"):
        assert trial(workers, setup=one_account, invariant=(always, "not always")).verdict == "violated"


# -- anyio ------------------------------------------------------------------------------------------------------------


async def add_within(query: str, seconds: float, cancels: str) -> None:
    try:
        if cancels == "anyio":
            with anyio.fail_after(seconds):
                await add(query)
        else:
            async with asyncio.timeout(seconds):
                await add(query)
    except TimeoutError:
        await add(query)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("cancels", "query", "verdict"),
    [
        ("asyncio", ADD, "kept"),
        ("anyio", ADD, "violated"),
        ("asyncio", LOOKS, "kept"),
        ("anyio", LOOKS, "violated"),
        ("anyio", ONCE, "kept"),
    ],
)
def test_a_client_that_does_not_wait_for_the_end_of_its_command(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, cancels: str, query: str, verdict: str
) -> None:
    """anyio cancels again at once. psycopg closes the connection then, and the command may wait for its row on."""
    workers = [worker("Ann", add_within, query, 2, cancels), worker("Bob", holds, 10)]
    how = {"setup": one_account, "invariant": (lambda: balance() == 110, "it is booked twice")}
    result = trial(workers, **how)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    if verdict == "violated":
        replays(trial, monkeypatch, result, workers, **how)
