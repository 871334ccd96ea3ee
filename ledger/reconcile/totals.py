"""The figures that the books of an account and of a whole book have in common."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Figures of one account, or their sums over the accounts of a book. Amounts: minor units."""

    opening: int = 0
    acknowledged: int = 0  # Σ amounts of the operations that a client was told are done
    acknowledged_operations: int = 0
    indeterminate: int = 0  # Σ amounts of the operations of unknown outcome that are on the chain
    indeterminate_operations: int = 0
    unreported: int = 0  # of these: entries on the chain that no client's operation names
    final: int = 0
    lost_amount: int = 0  # Σ |amount| of acknowledged operations off the chain: signs never cancel
    lost_updates: int = 0
    lost_without_trace: int = 0  # of these: without any entry in the store
    created_amount: int = 0  # Σ |amount| of entries on the chain that are duplicates or were refused
    created_updates: int = 0
    undecided: int = 0  # acknowledged operations that a broken chain leaves open
    forks: int = 0  # nodes of the tree with more than one child
    entries: int = 0
    problem_count: int = 0

    @property
    def expected(self) -> int:
        """The balance that the account should have: opening + acknowledged + the indeterminate amounts on the chain."""
        return self.opening + self.acknowledged + self.indeterminate

    @property
    def drift(self) -> int:
        """Final − expected. An ABA loss has a `lost_amount` and perhaps no drift."""
        return self.final - self.expected

    @property
    def balanced(self) -> bool:
        """Do the books balance: opening + Σ chain = balance, every step adds up, the chain is whole?

        This says nothing about losses: a lost update leaves books that balance, and an entry beside the chain.
        """
        return self.problem_count == 0

    @property
    def right(self) -> bool:
        """Do the books balance, with nothing lost and nothing created?"""
        return self.balanced and not (self.lost_updates or self.created_updates or self.drift)

    def figures(self) -> dict[str, Any]:
        numbers = {each.name: getattr(self, each.name) for each in fields(Totals)}
        return {**numbers, "expected": self.expected, "drift": self.drift, "balanced": self.balanced}
