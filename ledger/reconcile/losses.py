"""All losses of one account, for a page that lists them. `reconcile` keeps the first, the last and the worst."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from ledger.reconcile.chain import Chain, beyond_the_break, follow
from ledger.reconcile.evidence import Loss, prove
from ledger.reconcile.rows import AccountRow, EntryRow


class Losses:
    """The entries of one account that are off its chain, oldest first. Each proof walks the chain once."""

    def __init__(self, account: AccountRow, entries: Iterable[EntryRow]) -> None:
        self.chain: Chain = follow(account, entries)
        unsure = beyond_the_break(self.chain)
        applied = {row.key for ident, row in self.chain.rows.items() if ident in self.chain.above}
        self.entries: list[EntryRow] = sorted(
            (
                row.whole()
                for ident, row in self.chain.rows.items()
                if ident not in self.chain.above and ident not in unsure and row.key not in applied
            ),
            key=lambda row: (row.seq, row.written_at),
        )

    def __len__(self) -> int:
        return len(self.entries)

    def proof(self, entry: UUID | None = None) -> Loss | None:
        """Return the evidence for one lost entry (by default the first), or None if it is not lost."""
        for row in self.entries:
            if entry is None or row.id == entry:
                return prove(self.chain, row.key, row, None)
        return None
