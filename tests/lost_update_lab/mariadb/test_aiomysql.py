"""Operations on a MariaDB through aiomysql: plain, by its pool, and by SQLAlchemy's sessions of asyncio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from lost_update_lab import worker
from lost_update_lab.gates.cancelled import LET_IT_END
from lost_update_lab.invariants import unique
from lost_update_lab.runs.one_owner import OF_ITS_OWN
from lost_update_lab.scenarios.mutator import LOCK
from lost_update_lab.under_test.mariadb import connect_async
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial
from tests.lost_update_lab.scenarios.test_asyncio_twins import sales, sell
from tests.lost_update_lab.scenarios.test_sqlalchemy import Base, Show, Versioned

aiomysql = pytest.importorskip("aiomysql")
READ = "SELECT uses FROM voucher WHERE code = %s"
FOR_UPDATE = f"{READ} FOR UPDATE"


async def redeemed(sql: Any, query: str, customer: int) -> str:
    """In a transaction."""
    await sql.begin()
    async with sql.cursor() as cursor:
        await cursor.execute(query, ["XMAS"])
        (left,) = await cursor.fetchone()
        if left < 1:
            await sql.rollback()
            return "too late"
        await cursor.execute("UPDATE voucher SET uses = %s WHERE code = %s", [left - 1, "XMAS"])
        await cursor.execute("INSERT INTO redemption (code, customer) VALUES (%s, %s)", ["XMAS", customer])
    await sql.commit()
    return "redeemed"


async def redeem(query: str, customer: int) -> str:
    async with await connect_async(os.environ["DATABASE_URL"]) as sql:
        return await redeemed(sql, query, customer)


@asynccontextmanager
async def pool(**given: Any) -> AsyncIterator[Any]:
    url = shop.parameters(os.environ["DATABASE_URL"])
    where = {"unix_socket": url["unix_socket"], "user": url["user"], "db": url["database"]}
    async with aiomysql.create_pool(**where, **given) as made:
        yield made


async def redeem_by_a_pool(query: str, customer: int) -> str:
    """One connection, which each of two operations has in turn."""
    async with pool(minsize=1, maxsize=1) as connections:
        async with connections.acquire() as sql, sql.cursor(aiomysql.DictCursor) as cursor:
            await cursor.execute("SELECT COUNT(*) AS redeemed FROM redemption")
            assert (await cursor.fetchone()).keys() == {"redeemed"}
            await sql.commit()
        async with connections.acquire() as sql:
            return await redeemed(sql, query, customer)


def both(call: Callable[..., Any], query: str) -> list[Any]:
    return [worker("Ann", call, query, 1), worker("Bob", call, query, 2)]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("query", "verdict"), [(READ, "violated"), (FOR_UPDATE, "kept")])
@pytest.mark.parametrize("call", [redeem, redeem_by_a_pool])
def test_a_voucher(trial: Trial, call: Any, query: str, verdict: str) -> None:
    result = trial(both(call, query))
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    assert not any("without" in note for note in result.notes)  # the control without FOR UPDATE breaks
    if result.schedule:
        assert result.schedule.confirmed == 10
        assert "test_aiomysql.py:" in str(result)


@pytest.mark.deep
@pytest.mark.parametrize("hazard", ["crashes", "lost_replies"])
def test_a_voucher_under_a_fault(trial: Trial, hazard: str) -> None:
    result = trial(both(redeem, FOR_UPDATE), invariant=unique("redemption", "code"), **{hazard: 1})
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


@pytest.mark.deep
def test_its_counterexample_comes_again(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    found = trial(both(redeem, READ))
    monkeypatch.setenv("LOST_UPDATE_LAB_REPLAY", found.id)
    again = trial(both(redeem, READ))
    assert again.replayed
    assert (again.verdict, again.id) == (found.verdict, found.id)


async def transfer(first: int, second: int) -> None:
    async with await connect_async(os.environ["DATABASE_URL"]) as sql, sql.cursor() as cursor:
        await sql.autocommit(False)
        for number in (first, second):
            await cursor.execute("UPDATE account SET balance = balance - 10 WHERE id = %s", [number])
        await sql.commit()


@pytest.mark.deep
@pytest.mark.parametrize(("other", "verdict"), [((2, 1), "stalled"), ((1, 2), "kept")])
def test_two_rows(trial: Trial, other: tuple[int, int], verdict: str) -> None:
    """In opposite orders: one of them is the victim of a deadlock. Each begins with its first command."""
    result = trial([worker("Ann", transfer, 1, 2), worker("Bob", transfer, *other)])
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


async def claim(who: int) -> bool:
    """In autocommit, in one command that reads and writes."""
    async with await connect_async(os.environ["DATABASE_URL"]) as sql, sql.cursor() as cursor:
        await cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        await cursor.execute(
            "INSERT INTO redemption (code, customer) SELECT 'XMAS', %s FROM voucher"
            " WHERE NOT EXISTS (SELECT 1 FROM redemption)",
            [who],
        )
        return bool(cursor.rowcount)


@pytest.mark.deep
def test_a_command_that_reads_and_writes(trial: Trial) -> None:
    result = trial([(claim, 1), (claim, 2)], invariant=unique("redemption", "code"))
    assert (result.verdict, result.exhausted) == ("violated", True), str(result)


async def take(query: str) -> None:
    """In one transaction if it locks."""
    async with await connect_async(os.environ["DATABASE_URL"]) as sql, sql.cursor() as cursor:
        await sql.autocommit(query != FOR_UPDATE)
        await cursor.execute(query, ["XMAS"])
        (left,) = await cursor.fetchone()
        await cursor.execute("UPDATE voucher SET uses = %s WHERE code = %s", [left - 1, "XMAS"])
        await sql.commit()


async def take_two(query: str) -> None:
    await asyncio.gather(take(query), take(query))


@pytest.mark.deep
@pytest.mark.parametrize(("query", "verdict"), [(FOR_UPDATE, "kept"), (READ, "violated")])
def test_two_tasks_of_one_event_loop(trial: Trial, query: str, verdict: str) -> None:
    lost = (lambda: shop.ask(READ, "XMAS") == ((-1,),)), "a withdrawal is lost"
    result = trial([worker("Ann", take_two, query)], invariant=lost)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


# -- SQLAlchemy -------------------------------------------------------------------------------------------------------


def two_shows() -> None:
    engine = create_engine(os.environ["DATABASE_URL"].replace("mysql:", "mysql+pymysql:"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Show(id=1, sold=0), Versioned(id=1, sold=0)])
        session.commit()
    engine.dispose()


@pytest.mark.deep
@sales
def test_sqlalchemy(show: type[Show | Versioned], locks: bool, verdict: str, trial: Trial) -> None:
    workers = [worker("Ann", sell, show, 1, locks), worker("Bob", sell, show, 2, locks)]
    result = trial(workers, setup=two_shows, refusals=[StaleDataError])
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


# -- what protects it -------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_its_lock_is_taken_away(trial: Trial) -> None:
    result = trial(both(redeem, FOR_UPDATE), mutate=True)
    assert {each.mutation.kind: each.word for each in result.mutations} == {LOCK: "violated"}
    assert "test_aiomysql.py:" in str(result.mutations[0].mutation)


# -- what is not explored ---------------------------------------------------------------------------------------------


async def impatient() -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await redeem(FOR_UPDATE, 1)


async def shares() -> None:
    async with await connect_async(os.environ["DATABASE_URL"]) as sql:
        await asyncio.gather(redeemed(sql, READ, 1), redeemed(sql, READ, 2))


def test_a_command_that_is_cancelled_is_not_judged(trial: Trial) -> None:
    result = trial([impatient, impatient])
    assert (result.verdict, result.schedule) == ("inconclusive", None), str(result)
    assert "is cancelled while a command of aiomysql is under way (" in result.cause
    assert result.remedy == LET_IT_END


def test_two_tasks_that_use_one_connection_are_not_judged(trial: Trial) -> None:
    with pytest.raises(Mistake) as mistake:
        trial([shares, shares])
    assert "two coroutines of A use one connection of aiomysql at a time" in str(mistake.value)
    assert OF_ITS_OWN in str(mistake.value)


@pytest.fixture
def made_before(address: str) -> Iterator[Any]:
    loop = asyncio.new_event_loop()
    made = loop.run_until_complete(connect_async(address))
    yield made
    loop.run_until_complete(made.ensure_closed())
    loop.close()


def test_a_connection_of_another_loop(trial: Trial, made_before: Any) -> None:
    with pytest.raises(Mistake, match="was made outside of the workers, in another event loop"):
        trial([partial(redeemed, made_before, READ, 1), partial(redeemed, made_before, READ, 2)])


async def count() -> int:
    async with await connect_async(os.environ["DATABASE_URL"]) as sql, sql.cursor() as cursor:
        await cursor.execute("SELECT COUNT(*) FROM redemption")
        return int((await cursor.fetchone())[0])


@pytest.mark.deep
def test_an_invariant_may_ask_by_it(trial: Trial) -> None:
    once = (lambda: asyncio.run(count()) <= 1, "it was redeemed twice")
    assert trial(both(redeem, READ), invariant=once).verdict == "violated"
    kept = trial(both(redeem, FOR_UPDATE), invariant=once)
    assert (kept.verdict, kept.exhausted) == ("kept", True), str(kept)
