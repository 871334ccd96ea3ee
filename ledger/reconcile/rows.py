"""What reconcile reads: plain tuples, so that it needs no database and no Django.

Amounts and balances are integers in minor units (cents).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class Outcome(StrEnum):
    """What the client learned of its operation, in Jepsen's words."""

    OK = "ok"  # acknowledged: the ledger said that it is done
    FAIL = "fail"  # certainly not applied
    INFO = "info"  # unknown: a time-out, a killed worker


class AccountRow(NamedTuple):
    """An account as its store has it now. `head`: the entry that wrote the balance last, or None."""

    number: str
    opening: int
    balance: int
    version: int
    head: UUID | None


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
    seq: int = 0  # the store's order of writes on this account; 0: unknown, the clocks must do


class Link(NamedTuple):
    """What the chain needs of an entry. A store with millions of them yields these instead of EntryRows (half the
    columns, and ids that are cheap to hash), and the whole rows of the few that are shown."""

    id: bytes  # UUID.bytes
    key: str
    amount: int
    balance_before: int
    balance_after: int
    parent: bytes | None
    seq: int  # the store's order of writes on this account


Row = EntryRow | Link
#: whole rows of some links, in any order
Complete = Callable[[Sequence[Link]], Iterable[EntryRow]]


class Operation(NamedTuple):
    """What one client saw of one posting on one account. `amount` is this account's share of the posting.

    `started` and `ended`: seconds since the epoch, from one clock. The same key may appear several times (a
    client that tried again): the strongest outcome counts, `ok` before `info` before `fail`.
    """

    key: str
    amount: int
    outcome: Outcome
    started: float
    ended: float
    worker: str = ""
