"""All losses of one account, for a page that lists them. `reconcile` keeps the first, the last and the worst."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from ledger.reconcile.chain import Chain, Node, beyond_the_break, follow, order
from ledger.reconcile.evidence import Loss, prove, written_over
from ledger.reconcile.rows import AccountRow, ChainRow, EntryRow

#: lines of a tree that a page shows
MOST_TWIGS = 40


class Twig(NamedTuple):
    """A line of the tree. `row`: None for the opening; `there`: is it in the balance?"""

    depth: int
    row: EntryRow | None
    there: bool


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
        """Return the evidence for one lost entry (by default the clearest), or None if it is not lost."""
        row = self._clearest() if entry is None else next((r for r in self.entries if r.id == entry), None)
        return prove(self.chain, row.key, row, None) if row else None

    def _clearest(self) -> EntryRow | None:
        """Two writers who had read the same head, close together; the first loss where there is none."""
        apart = {
            row.id: order(over) - order(row)
            for row in self.entries
            if (over := written_over(self.chain, row))
        }
        return min(
            self.entries,
            key=lambda row: (row.id not in apart, apart.get(row.id, 0), order(row)),
            default=None,
        )

    def fork(self, entry: EntryRow, after: int = 4) -> list[Twig]:
        """Return the tree around a lost entry, as lines: the head that its writer had read, all that was written on
        top of it, and the next entries of each branch."""
        node, rows, above = self.chain.node, self.chain.rows, self.chain.above
        children: dict[Node, list[ChainRow]] = {}
        for row in self.chain.in_order():
            children.setdefault(node(row.parent), []).append(row)
        root = rows.get(node(entry.parent))
        found = [Twig(0, root.whole() if root else None, root is None or node(root.id) in above)]

        def grow(parent: Node, depth: int) -> None:
            for row in children.get(parent, ()):
                if len(found) < MOST_TWIGS:
                    found.append(Twig(depth, row.whole(), node(row.id) in above))
                    if depth <= after:
                        grow(node(row.id), depth + 1)

        grow(node(entry.parent), 1)
        return found
