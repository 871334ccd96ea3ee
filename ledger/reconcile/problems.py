"""What does not add up, in sentences: the first few, and how many there were."""

from __future__ import annotations

from uuid import UUID

from ledger.reconcile.rows import AccountRow, Row


def shown(ident: UUID | bytes | int) -> UUID:
    """An entry's id (a UUID, its bytes or its int) as people write it."""
    if isinstance(ident, UUID):
        return ident
    return UUID(bytes=ident) if isinstance(ident, bytes) else UUID(int=ident)


class Problems:
    """Collects sentences about one account."""

    KEPT = 10

    def __init__(self) -> None:
        self.count = 0
        self.sentences: list[str] = []

    def add(self, sentence: str) -> None:
        self.count += 1
        if len(self.sentences) < self.KEPT:
            self.sentences.append(sentence)

    def broken(self, account: AccountRow, last: Row | None, node: bytes | int, *, cycle: bool) -> None:
        """`last`, the entry visited before (None: the account itself), leads to `node`, and there it ends."""
        who = (
            f"entry {shown(last.id)} names as its parent"
            if last
            else f"account {account.number} has as its head"
        )
        what = "which comes after it: a cycle" if cycle else "which is not in the books"
        self.add(f"the chain is broken: {who} {shown(node)}, {what}")

    def other_balance(self, account: AccountRow, last: Row | None, expected: int, row: Row) -> None:
        """`last` (None: the account itself) has seen `expected`, and `row` below it wrote something else."""
        who = f"entry {shown(last.id)} read" if last else f"account {account.number} has"
        self.add(f"{who} {expected:,}, but entry {shown(row.id)} before it wrote {row.balance_after:,}")

    def wrong_sum(self, row: Row) -> None:
        self.add(
            f"entry {shown(row.id)}: {row.balance_before:,} {row.amount:+,} is not {row.balance_after:,}"
        )

    def other_opening(self, account: AccountRow, first: Row | None, read: int) -> None:
        """The `first` entry (None: there is none) read something else than the opening balance."""
        who = (
            f"the first entry, {shown(first.id)}, read"
            if first
            else f"account {account.number} has no head but"
        )
        self.add(f"{who} {read:,}, but the opening balance is {account.opening:,}")
