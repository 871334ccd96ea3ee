"""What both workers share although they stand for processes: of a pool each gets its own, a connection is refused."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from socket import socket
from typing import Any

import psycopg
import psycopg_pool
import pytest
import redis
from fastapi import Depends, FastAPI, HTTPException
from fastapi.testclient import TestClient
from redis.sentinel import Sentinel
from sqlalchemy import create_engine, func, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from lost_update_lab import Mistake, Result
from tests.lost_update_lab.scenarios.shop import READ, one_voucher

Trial = Callable[..., Result]


def count(keys: Any) -> None:
    keys.set("count", int(keys.get("count") or 0) + 1)


def count_at_once(keys: Any) -> None:
    keys.incr("count")


@pytest.mark.deep
@pytest.mark.parametrize(("operation", "verdict"), [(count, "violated"), (count_at_once, "kept")])
def test_a_redis_client(trial: Trial, scenario_urls: tuple[str, str], operation: Any, verdict: str) -> None:
    with redis.Redis.from_url(scenario_urls[1]) as keys:
        result = trial([(operation, keys), (operation, keys)], crashes=1)
    assert (result.verdict, result.exhausted) == (verdict, True)


def test_a_sentinel_has_a_pool_that_cannot_be_made_again(trial: Trial) -> None:
    """It is asked for the address of a primary, and is no server that the explorer was given."""
    with unused_port() as port:
        primary = Sentinel([("127.0.0.1", port)], socket_timeout=0.2).master_for("lab")
        with pytest.raises(Mistake, match=rf"cannot connect: .*127\.0\.0\.1:{port}"):
            trial([(count_at_once, primary), (count_at_once, primary)])


@contextmanager
def unused_port() -> Iterator[int]:
    """Nobody listens there."""
    with socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


class Held:
    """As a module keeps it: made by who comes first."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.made = make, None

    def ask(self, query: str) -> Any:
        self.made = self.made or self.make()
        return self.made.execute(query)


def connection() -> Any:
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def session() -> Any:
    url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
    made = Session(create_engine(url))
    made.execute = lambda query, execute=made.execute: execute(text(query))  # type: ignore[method-assign]
    return made


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("make", [connection, session])
def test_a_connection(trial: Trial, make: Callable[[], Any]) -> None:
    held = Held(make)
    query = READ.replace("%s", "'XMAS'")

    def operation() -> bool:
        return bool(held.ask(query).fetchone())

    with pytest.raises(Mistake, match=r"one connection .* is used by two workers.*make its own connection"):
        trial([operation, operation], setup=one_voucher)


def test_a_connection_that_no_lock_guards(trial: Trial, scenario_urls: tuple[str, str]) -> None:
    held = Held(connection)

    def operation(sql: Any) -> bool:
        """Its own connection comes first, so no two commands of the other one are under way at a time."""
        sql.execute(READ, ["XMAS"])
        return bool(held.ask("SELECT 1").fetchone())

    with pytest.raises(Mistake, match="one connection to postgres is used by two workers"):
        trial([operation, operation], setup=one_voucher)


def by_a_pool_of_its_own(query: str) -> int:
    """Made in the operation, as a script does, with threads that fill it."""
    with psycopg_pool.ConnectionPool(os.environ["DATABASE_URL"], min_size=2, max_size=2) as pool:
        pool.wait()
        with pool.connection() as sql:
            row = sql.execute(query, ["XMAS"]).fetchone()
            assert row
            sql.execute("UPDATE voucher SET uses = %s", [row[0] - 1])
        with pool.connection() as sql, pool.connection() as other:
            return len(sql.execute("SELECT 1").fetchall() + other.execute("SELECT 1").fetchall())


@pytest.mark.deep
@pytest.mark.parametrize(("query", "verdict"), [(READ, "violated"), (READ + " FOR UPDATE", "kept")])
def test_a_pool_of_an_operation(trial: Trial, query: str, verdict: str) -> None:
    result = trial([(by_a_pool_of_its_own, query)] * 2, setup=one_voucher, crashes=1)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


def unlock_all(sql: Any) -> None:
    sql.execute("SELECT pg_advisory_unlock_all()")


def locks_in_one_and_writes_in_the_next(options: dict[str, Any]) -> None:
    """A session lock protects the second only for as long as its session has it."""
    settings = {"min_size": 1, "max_size": 1, "kwargs": {"autocommit": True}} | options
    kind = settings.pop("kind", psycopg_pool.ConnectionPool)
    with kind(os.environ["DATABASE_URL"], **settings) as pool:
        with pool.connection() as sql:
            sql.execute("SELECT pg_advisory_lock(7)")
        with pool.connection() as sql:
            uses = sql.execute(READ, ["XMAS"]).fetchone()[0]
            sql.execute("UPDATE voucher SET uses = %s", [uses - 1])


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({}, "kept"),
        ({"reset": unlock_all}, "violated"),
        ({"check": unlock_all}, "violated"),
        ({"kind": psycopg_pool.NullConnectionPool, "min_size": 0}, "violated"),
    ],
    ids=["kept", "reset", "check", "null"],
)
def test_what_a_pool_does_with_a_connection_that_comes_back(
    trial: Trial, options: dict[str, Any], verdict: str
) -> None:
    """It was handed out as it was."""
    result = trial([(locks_in_one_and_writes_in_the_next, options)] * 2, setup=one_voucher)
    assert result.verdict == verdict, str(result)


def sets_the_level_in_one_and_writes_in_the_next() -> None:
    with psycopg_pool.ConnectionPool(os.environ["DATABASE_URL"], min_size=2) as pool:
        with pool.connection() as sql:
            sql.execute("SET default_transaction_isolation = 'serializable'")
        with pool.connection() as sql:
            uses = sql.execute(READ, ["XMAS"]).fetchone()
            assert uses
            sql.execute("UPDATE voucher SET uses = %s", [uses[0] - 1])


def test_two_connections_in_a_row_are_two_sessions(trial: Trial) -> None:
    """The last one to come back was lent first, so its settings were in force."""
    result = trial([sets_the_level_in_one_and_writes_in_the_next] * 2, setup=one_voucher)
    assert result.verdict == "violated", str(result)


def in_two_threads(pool_size: int) -> None:
    """Each reads, and writes it + 1: with one connection, one after the other."""
    with psycopg_pool.ConnectionPool(os.environ["DATABASE_URL"], min_size=1, max_size=pool_size) as pool:

        def redeem() -> None:
            with pool.connection() as sql:
                uses = sql.execute(READ, ["XMAS"]).fetchone()
                assert uses
                sql.execute("UPDATE voucher SET uses = %s", [uses[0] - 1])

        threads = [threading.Thread(target=redeem) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def looks(sql: Any) -> None:
    sql.execute(READ, ["XMAS"]).fetchone()


def two_uses_are_gone(sql: Any) -> bool:
    return bool(sql.execute("SELECT uses FROM voucher").fetchone()[0] == -1)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("pool_size", "verdict"), [(2, "violated"), (1, "kept")])
def test_threads_wait_for_a_pool(trial: Trial, pool_size: int, verdict: str) -> None:
    """A pool of one connection lent two."""
    workers = [(in_two_threads, pool_size), (looks,)]
    result = trial(workers, setup=one_voucher, invariant=two_uses_are_gone, control=False)
    assert result.verdict == verdict, str(result)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("operation", "verdict"), [(count, "violated"), (count_at_once, "kept")])
def test_a_blocking_pool_of_one_connection(
    trial: Trial, scenario_urls: tuple[str, str], shared: bool, operation: Any, verdict: str
) -> None:
    def make() -> Any:
        return redis.BlockingConnectionPool.from_url(scenario_urls[1], max_connections=1, timeout=5)

    kept = make()

    def operate() -> None:
        operation(redis.Redis(connection_pool=kept if shared else make()))

    result = trial([operate, operate], crashes=1)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)
    kept.disconnect()


class _Base(DeclarativeBase): ...


class Purse(_Base):
    __tablename__ = "purse"
    id: Mapped[int] = mapped_column(primary_key=True)
    coins: Mapped[int]
    at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())


def an_app(engine: Any) -> FastAPI:
    app = FastAPI()

    def session() -> Iterator[Session]:
        with Session(engine) as sql:
            yield sql
            sql.commit()

    @app.post("/spend")
    def spend(sql: Session = Depends(session)) -> None:  # noqa: B008  (as FastAPI wants it)
        purse = sql.get_one(Purse, 1, with_for_update=True)
        if not purse.coins:
            raise HTTPException(409)
        purse.coins -= 1

    return app


def spends(app: FastAPI) -> int:
    return int(TestClient(app).post("/spend").status_code)


@pytest.mark.deep
def test_what_a_cut_schedule_has_not_given_back_does_not_use_up_the_pool(
    trial: Trial, scenario_urls: tuple[str, str]
) -> None:
    """FastAPI ends its generators itself. After two such schedules, one worker alone waited for its pool."""
    url = scenario_urls[0].replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url, pool_size=2, max_overflow=0)
    app = an_app(engine)

    def setup() -> None:
        _Base.metadata.create_all(engine)
        with Session(engine) as sql:
            sql.add(Purse(id=1, coins=1))
            sql.commit()

    result = trial([(spends, app), (spends, app)], setup=setup, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)
