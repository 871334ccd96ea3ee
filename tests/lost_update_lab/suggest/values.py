"""Operations with the arguments that people pass, and the frame of each call."""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass
from decimal import Decimal
from types import FrameType
from typing import Any, NamedTuple

from pydantic import BaseModel
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Line:
    sku: str
    amount: Decimal
    colour: Colour = Colour.RED


class Order(BaseModel):
    code: str
    lines: list[int]


class Pair(NamedTuple):
    one: int
    other: int


class Base(DeclarativeBase): ...


class Voucher(Base):
    __tablename__ = "voucher"
    code: Mapped[str] = mapped_column(primary_key=True)


class Service:
    def __init__(self, bank: str, most: int = 3) -> None:
        self.bank, self._most = bank, most

    def redeem(self, code: str) -> FrameType:
        return sys._getframe()

    @classmethod
    def refund(cls, code: str) -> FrameType:
        return sys._getframe()


class Counting(Service):
    """It does not keep what it was given."""

    def __init__(self, bank: str, most: int = 3) -> None:
        self.calls = len(bank) + most


def buy(what: Any, how_many: int = 1) -> FrameType:
    return sys._getframe()


def several(*codes: str) -> FrameType:
    return sys._getframe()


def by_session(voucher: Any, session: Any) -> FrameType:
    return sys._getframe()


def inner() -> FrameType:
    return (lambda: sys._getframe())()
