"""Builds histories of one account, write by write, as the ledger would record them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from ledger.reconcile import AccountBooks, AccountRow, ClientOperation, ClientOutcome, EntryRow, reconcile

START = datetime(2026, 1, 2, 9, 0, tzinfo=UTC)


def at(tick: float) -> datetime:
    """The moment `tick` milliseconds after the start."""
    return START + timedelta(milliseconds=tick)


@dataclass
class History:
    """An account, with the entry that each writer had read (by key; None: the opening)."""

    opening: int = 100
    number: str = "A1"
    entries: list[EntryRow] = field(default_factory=list)
    operations: list[ClientOperation] = field(default_factory=list)
    head: EntryRow | None = None

    def write(
        self,
        key: str,
        amount: int,
        read: str | None = "head",
        *,
        worker: str = "",
        outcome: ClientOutcome | None = None,
        read_tick: float | None = None,
    ) -> EntryRow:
        """Write an entry over whatever is there; `read` names the entry that its writer had seen."""
        seen = self.head if read == "head" else self.named(read)
        before = seen.balance_after if seen else self.opening
        tick = len(self.entries) + 1.0
        read_at = at(tick - 0.5 if read_tick is None else read_tick)
        row = EntryRow(
            UUID(int=len(self.entries) + 1),
            key,
            amount,
            before,
            before + amount,
            seen.id if seen else None,
            worker or f"web-{len(self.entries) + 1}",
            read_at,
            at(tick),
        )
        self.entries.append(row)
        self.head = row
        if outcome:
            self.told(key, amount, outcome)
        return row

    def told(self, key: str, amount: int, outcome: ClientOutcome) -> None:
        """A client saw `outcome` for `key`."""
        self.operations.append(ClientOperation(key, amount, outcome, 0.0, 1.0, f"client-{key}"))

    def named(self, key: str | None) -> EntryRow | None:
        return None if key is None else next(row for row in self.entries if row.key == key)

    @property
    def account(self) -> AccountRow:
        balance = self.head.balance_after if self.head else self.opening
        return AccountRow(
            self.number, self.opening, balance, len(self.entries), self.head.id if self.head else None
        )

    def books(self) -> AccountBooks:
        return reconcile(self.account, self.entries, self.operations)
