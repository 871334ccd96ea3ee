"""SQLAlchemy's ORM on psycopg: the sessions and the pool of a process are each worker's own, and are reset."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial

import pytest
from sqlalchemy import Engine, create_engine, func, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.orm.exc import StaleDataError

from lost_update_lab import Result, worker

Trial = Callable[..., Result]


class Base(DeclarativeBase):
    """What the shop stores."""


class Show(Base):
    __tablename__ = "show"
    id: Mapped[int] = mapped_column(primary_key=True)
    sold: Mapped[int]


class Versioned(Base):
    __tablename__ = "versioned_show"
    id: Mapped[int] = mapped_column(primary_key=True)
    sold: Mapped[int]
    version: Mapped[int] = mapped_column(default=1)
    __mapper_args__ = {"version_id_col": version}


@cache
def engine_of(url: str) -> Engine:
    return create_engine(url)


def engine() -> Engine:
    """One for the process, with its pool."""
    return engine_of(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))


def two_shows() -> None:
    Base.metadata.create_all(engine())
    with Session(engine()) as session:
        session.add_all([Show(id=1, sold=0), Versioned(id=1, sold=0)])
        session.commit()


def sell(show: type[Show | Versioned], seats: int, locks: bool = False) -> str:
    """Reads, and writes what it has read and some more."""
    with Session(engine()) as session, session.begin():
        session.get_one(show, 1, with_for_update=locks).sold += seats
    return "sold"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("show", "locks", "verdict"),
    [(Show, False, "violated"), (Show, True, "kept"), (Versioned, False, "kept")],
    ids=["as it is", "with_for_update", "version_id_col"],
)
def test_two_who_sell_seats_of_one_show(
    show: type[Show | Versioned], locks: bool, verdict: str, trial: Trial
) -> None:
    both = [worker("Ann", sell, show, 1, locks), worker("Bob", sell, show, 2, locks)]
    crashes = int(verdict == "kept")  # what is lost without one needs none
    result = trial(both, setup=two_shows, refusals=[StaleDataError], crashes=crashes)
    assert (result.verdict, result.exhausted) == (verdict, True), str(result)


def test_a_pool_that_pings_and_recycles_its_connections(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's first run had no old connection to ping, and its next runs had: "not repeatable"."""
    monkeypatch.setattr(
        f"{__name__}.engine_of", cache(partial(create_engine, pool_pre_ping=True, pool_recycle=1800))
    )
    both = [worker("Ann", sell, Show, 1, True), worker("Bob", sell, Show, 2, True)]
    result = trial(both, setup=two_shows, crashes=1, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


def sells_on_an_engine_of_its_own() -> None:
    url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
    with create_engine(url, pool_pre_ping=True, pool_recycle=60).begin() as connection:
        connection.execute(update(Show).values(sold=Show.sold + 1))


def test_an_engine_that_an_operation_makes(trial: Trial) -> None:
    """SQLAlchemy looks at the pool's `__init__` for the options that there are, and found the explorer's."""
    assert trial([sells_on_an_engine_of_its_own] * 2, setup=two_shows, control=False).kept


def add_seats(seats: int) -> None:
    with Session(engine()) as session, session.begin():
        session.execute(update(Show).values(sold=func.coalesce(Show.sold, 0) + seats))


def test_a_module_that_holds_what_has_every_attribute(trial: Trial) -> None:
    """`func` makes a function of whatever name it is asked for: also of `cache_info`."""
    assert trial([(add_seats, 1), (add_seats, 2)], setup=two_shows, control=False).kept
