"""The input of reconcile: plain tuples, without a database or Django.

Amounts and balances are integers in minor units (cents).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID


class ClientOutcome(StrEnum):
    """What the client learned of its operation, in Jepsen's words."""

    OK = "ok"  # acknowledged: the ledger said that it is done
    FAIL = "fail"  # certainly not applied
    INFO = "info"  # unknown: a time-out, a killed worker


class AccountRow(NamedTuple):
    """An account as it is in its store now. `head`: the entry that wrote the balance last, or None. `floor`: the lowest
    allowed balance, or None."""

    number: str
    opening: int
    balance: int
    version: int
    head: UUID | None
    floor: int | None = None


class EntryRow(NamedTuple):
    """One entry. `parent`: the head that its writer had read; None: it read the opening balance."""

    id: UUID
    key: str
    amount: int
    balance_before: int
    balance_after: int
    parent: UUID | None
    worker: str
    read_at: datetime  # when its writer read the balance …
    written_at: datetime  # … and wrote the new one, by the writer's own clock
    seq: int = 0  # the store's order of writes on this account; 0: unknown, so the clocks decide

    def whole(self) -> EntryRow:
        return self


class ChainRow(Protocol):
    """What the chain needs of an entry: an EntryRow, or a store's own tuple (ids as UUID.bytes), which is cheaper for
    millions of entries. `whole` is called only for the few that are shown."""

    @property
    def id(self) -> UUID | bytes: ...
    @property
    def key(self) -> str: ...
    @property
    def amount(self) -> int: ...
    @property
    def balance_before(self) -> int: ...
    @property
    def balance_after(self) -> int: ...
    @property
    def parent(self) -> UUID | bytes | None: ...
    @property
    def written_at(self) -> datetime | int: ...  # int: microseconds
    @property
    def seq(self) -> int: ...
    def whole(self) -> EntryRow: ...


class ClientOperation(NamedTuple):
    """What one client saw of one posting on one account. `amount` is this account's share of the posting.

    `started` and `ended` are seconds since the epoch, from one clock. A client that retries uses the same key several
    times. The strongest outcome counts: `ok` before `info` before `fail`. `excess`: no entry was requested here,
    because the other rows of a split account have the whole amount. An entry that exists all the same counts as `fail`.
    """

    key: str
    amount: int
    outcome: ClientOutcome
    started: float
    ended: float
    worker: str = ""
    excess: bool = False


#: separates an account's number from the number of one of its rows (ledger/stores/segments.py)
SEGMENT = "/"


def account_of(row: str) -> str:
    """Return the number of the account that a row belongs to."""
    return row.split(SEGMENT)[0]
