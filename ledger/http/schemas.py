"""The API's requests and responses. Amounts are whole numbers of minor units, within BIGINT."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import AfterValidator, ConfigDict, Field, StrictInt, model_validator

from ledger.posting import BIGINT

Amount = Annotated[StrictInt, Field(ge=-BIGINT, le=BIGINT)]


def _addressable(number: str) -> str:
    if number in (".", ".."):
        raise ValueError("an account's number is part of its address, where . and .. mean something else")
    return number


Number = Annotated[
    str, Field(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9_.:-]+$"), AfterValidator(_addressable)
]


class Strict(Schema):
    """Refuses unknown fields, which are mistakes."""

    model_config = ConfigDict(extra="forbid")


class AccountIn(Strict):
    account: Number
    opening: Amount = 0
    floor: Amount | None = None


class BookIn(Strict):
    """`accounts` by name, or `count` accounts A0001… each with `opening`."""

    strategy: str = Field(max_length=200)
    store: str = Field("postgres", max_length=20)
    name: str = Field("", max_length=200)
    settings: dict[str, Any] = {}
    accounts: list[AccountIn] = Field([], max_length=10_000)
    count: int = Field(0, ge=0, le=10_000)
    opening: Amount = 0

    @model_validator(mode="after")
    def _some_accounts(self) -> BookIn:
        if bool(self.accounts) == bool(self.count):
            raise ValueError("give either accounts or count")
        numbers = [a.account for a in self.accounts]
        if len(set(numbers)) < len(numbers):
            raise ValueError("an account is named twice")
        return self

    def opened(self) -> list[tuple[str, int, int | None]]:
        """Return (number, opening balance, floor) of each account."""
        if self.accounts:
            return [(a.account, a.opening, a.floor) for a in self.accounts]
        return [(f"A{i:04d}", self.opening, None) for i in range(1, self.count + 1)]


class LineIn(Strict):
    account: Number
    amount: Amount


class PostingIn(Strict):
    """One account and amount, or several `lines` (a transfer)."""

    account: Number | None = None
    amount: Amount | None = None
    lines: list[LineIn] = Field([], max_length=100)
    description: str = Field("", max_length=500)

    @model_validator(mode="after")
    def _one_form(self) -> PostingIn:
        single = self.account is not None and self.amount is not None
        if single == bool(self.lines) or (self.account is None) != (self.amount is None):
            raise ValueError("give either account and amount, or lines")
        numbers = [line.account for line in self.lines]
        if len(set(numbers)) < len(numbers):
            raise ValueError("an account appears in two lines")
        return self

    def all_lines(self) -> list[LineIn]:
        """Return the posting's lines, in whichever form they came."""
        if self.account is None or self.amount is None:
            return self.lines
        return [LineIn(account=self.account, amount=self.amount)]


class StrategyOut(Schema):
    strategy: str
    title: str
    stores: list[str]
    withstands: list[str]


class BookRow(Schema):
    id: UUID
    name: str
    strategy: str
    store: str
    settings: dict[str, Any]


class AccountOut(Schema):
    account: str
    balance: int
    version: int
    opening: int | None = None


class BookOut(Schema):
    book: BookRow
    accounts: list[AccountOut]


class EntryOut(Schema):
    entry: UUID
    account: str
    amount: int
    balance_before: int
    balance_after: int


class PostingOut(Schema):
    key: str
    replayed: bool
    retries: int
    warning: str
    entries: list[EntryOut]
