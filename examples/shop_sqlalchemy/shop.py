"""A shop that sells seats, with SQLAlchemy's ORM behind FastAPI: the last seat is sold twice, and how it is not."""

from __future__ import annotations

import os
from functools import cache

from fastapi import FastAPI, HTTPException
from sqlalchemy import Engine, create_engine, select, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    """What the shop stores."""


class Show(Base):
    __tablename__ = "show"
    id: Mapped[int] = mapped_column(primary_key=True)
    seats: Mapped[int]


class Ticket(Base):
    __tablename__ = "ticket"
    id: Mapped[int] = mapped_column(primary_key=True)
    show: Mapped[int]
    customer: Mapped[str]


class Versioned(Base):
    """The same as Show, with a version that each UPDATE checks."""

    __tablename__ = "versioned_show"
    id: Mapped[int] = mapped_column(primary_key=True)
    seats: Mapped[int]
    version: Mapped[int] = mapped_column(default=1)
    __mapper_args__ = {"version_id_col": version}


@cache
def engine() -> Engine:
    """One for the process, with its pool."""
    return create_engine(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))


def one_seat() -> None:
    Base.metadata.create_all(engine())
    with Session(engine()) as session:
        session.add_all([Show(id=1, seats=1), Versioned(id=1, seats=1)])
        session.commit()


class SoldOut(Exception):
    """No seat is left."""


def buy(customer: str) -> None:
    """Reads, and writes what it has read less one."""
    with Session(engine()) as session, session.begin():
        show = session.get_one(Show, 1)
        if show.seats < 1:
            raise SoldOut
        show.seats -= 1
        session.add(Ticket(show=1, customer=customer))


def buy_locked(customer: str) -> None:
    """The row is locked before it is read."""
    with Session(engine()) as session, session.begin():
        show = session.get_one(Show, 1, with_for_update=True)
        if show.seats < 1:
            raise SoldOut
        show.seats -= 1
        session.add(Ticket(show=1, customer=customer))


def buy_versioned(customer: str) -> None:
    """Who comes second finds another version: StaleDataError, and nothing is written."""
    with Session(engine()) as session, session.begin():
        show = session.get_one(Versioned, 1)
        if show.seats < 1:
            raise SoldOut
        show.seats -= 1
        session.add(Ticket(show=1, customer=customer))


def buy_conditionally(customer: str) -> None:
    """The database looks and writes in one statement."""
    with Session(engine()) as session, session.begin():
        sold = session.execute(update(Show).where(Show.id == 1, Show.seats > 0).values(seats=Show.seats - 1))
        if not sold.rowcount:
            raise SoldOut
        session.add(Ticket(show=1, customer=customer))


def tickets() -> int:
    with Session(engine()) as session:
        return len(session.scalars(select(Ticket.id)).all())


app = FastAPI()


@app.post("/buy/{customer}")
def buy_endpoint(customer: str, locked: bool = False) -> dict[str, str]:
    try:
        (buy_locked if locked else buy)(customer)
    except SoldOut:
        raise HTTPException(409, "sold out") from None
    return {"customer": customer}
