"""transfers: money moves between accounts, in both directions at once.

Law: the total never changes. Readers look at all accounts during the run; at the end no posting may be torn (one
leg in the books, the other gone). Without an order of locks two opposite transfers deadlock: `lines: opposite`
sends them as they come (a strategy that sorts its accounts does not mind), `lines: sorted` in one order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from loadtest.workloads.base import Legs, Opening, Workload

ORDERS = ("opposite", "sorted")


class Transfers(Workload):
    """Transfers of 1 to `most` between two of the accounts (at least two), and a look at all of them now and then."""

    slug = "transfers"
    title = "Transfers"
    law = "the sum of all accounts never changes, for no reader at no time"

    def __init__(
        self,
        accounts: int = 2,
        most: int = 100,
        opening: int = 100_000,
        lines: str = "opposite",
        looks: float = 0.05,
        **options: Any,
    ) -> None:
        """`opening`: of each account; `lines`: opposite or sorted; `looks`: share of operations that only look."""
        super().__init__(max(2, accounts), **options)
        if lines not in ORDERS:
            raise ValueError(f"lines: {' or '.join(ORDERS)}, not {lines!r}")
        if most < 1 or not 0 <= looks < 1:
            raise ValueError(f"most: 1 or more, looks: 0 to 1, not {most} and {looks}")
        self.most, self.opening, self.lines, self.looks = most, opening, lines, looks

    def openings(self) -> list[Opening]:
        return [Opening(number, self.opening) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        if chance.random() < self.looks:
            return ()
        source, target = chance.sample(self.numbers(), 2)
        amount = chance.randint(1, self.most)
        legs = ((source, -amount), (target, amount))
        return legs if self.lines == "opposite" else tuple(sorted(legs))

    def complaint(self, balances: Mapping[str, int]) -> str:
        """`balances`: all accounts, as they were at one moment."""
        total, wanted = sum(balances.values()), self.opening * self.accounts
        whole = len(balances) >= self.accounts  # the API shows the first 1000
        return (
            ""
            if total == wanted or not whole
            else f"a reader saw {total} in all accounts together, not {wanted}"
        )
