"""What does not add up: the first few problems as sentences, and their number."""

from __future__ import annotations

from uuid import UUID

from ledger.reconcile.rows import AccountRow, ChainRow


def shown(ident: UUID | bytes | int) -> UUID:
    """Return an entry's id (a UUID, its bytes or its int) as people write it."""
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

    def broken(self, account: AccountRow, last: ChainRow | None, node: bytes | int, *, cycle: bool) -> None:
        """The chain ends at `node`, to which `last` leads: the entry visited before, or the account itself (None)."""
        who = (
            f"entry {shown(last.id)} names as its parent"
            if last
            else f"account {account.number} has as its head"
        )
        what = "which comes after it: a cycle" if cycle else "which is not in the books"
        self.add(f"the chain is broken: {who} {shown(node)}, {what}")

    def other_balance(self, account: AccountRow, last: ChainRow | None, expected: int, row: ChainRow) -> None:
        """`last` (None: the account itself) has read `expected`, but `row` below it wrote another balance."""
        who = f"entry {shown(last.id)} read" if last else f"account {account.number} has"
        self.add(f"{who} {expected:,}, but entry {shown(row.id)} before it wrote {row.balance_after:,}")

    def wrong_sum(self, row: ChainRow) -> None:
        self.add(
            f"entry {shown(row.id)}: {row.balance_before:,} {row.amount:+,} is not {row.balance_after:,}"
        )

    def other_opening(self, account: AccountRow, first: ChainRow | None, read: int) -> None:
        """The `first` entry (None: there is none) did not read the opening balance."""
        who = (
            f"the first entry, {shown(first.id)}, read"
            if first
            else f"account {account.number} has no head but"
        )
        self.add(f"{who} {read:,}, but the opening balance is {account.opening:,}")
