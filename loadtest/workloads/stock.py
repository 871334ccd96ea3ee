"""stock: everybody wants a piece, and there are fewer pieces than callers. How 14 of 10 prizes are given away.

Law: no stock below zero: not in any entry, and not by adding up what was promised to the buyers. "Out of stock" is
a `fail`, and right. A breach is `oversold`.

There are two routes to 14 of 10 prizes. The article shows the figure and not which one it took:

1. Check, then decrement. The decrement itself is atomic, so the books balance; but both checked before.

    stock 1   A: SELECT stock → 1, enough
              B: SELECT stock → 1, enough
              A: UPDATE stock = stock − 1 → 0        B: UPDATE stock = stock − 1 → −1

   The strategy `check-then-decrement` is that. Where the write is not atomic either (`no-lock`), the stock says 0
   at the end, and the pieces that were promised twice are lost updates: `lost`, and `oversold` beside it.

2. Acknowledged decrements are forgotten. The counter in Redis is atomic (`redis-atomic`, DECR) and nobody is let in
   too many, until the server restarts from an older snapshot, or a replica takes over that had not yet heard of the
   last decrements: the pieces are on the shelf again, and are sold again. No lock helps; `lost`, for what was
   acknowledged is off the chain, and `oversold` when the sum of the promises exceeds the stock.

tests/loadtest/trials/test_fourteen_prizes.py gives 14 of 10 away by either route.

A delivery now and then (`deliveries`) keeps the stock near zero, so that the floor is tried all the time and not
once; 0 is the article's ten prizes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ledger.reconcile import Outcome
from loadtest.history.calls import Call
from loadtest.verdict.evidence import Doubt
from loadtest.workloads.base import Legs, Opening, Turns, Workload, share, whole

MOST_DELIVERED = 5


class Stock(Workload):
    """Each order takes one piece; a delivery brings 1 to 5."""

    slug = "stock"
    title = "Stock deduction"
    law = "no stock is below zero, neither in an entry nor in the sum of what was promised"
    turns = Turns((Opening("A0001", 1, 0),), lambda index: (("A0001", -1),))
    options = {
        "stock": "pieces of each article at the opening (10)",
        "deliveries": "share of operations that bring pieces (0.1)",
    }

    def __init__(self, accounts: int = 1, stock: int = 10, deliveries: float = 0.1) -> None:
        """`stock`: pieces at the opening. `deliveries`: share of the operations that bring some."""
        super().__init__(accounts)
        self.stock = whole("stock", stock, 0)
        self.deliveries = share("deliveries", deliveries)

    def openings(self) -> list[Opening]:
        return [Opening(number, self.stock, 0) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        brings = chance.random() < self.deliveries
        return ((self.any_account(chance), chance.randint(1, MOST_DELIVERED) if brings else -1),)

    def doubts(self, calls: Sequence[Call]) -> list[Doubt]:
        if any(call.outcome is Outcome.FAIL and not call.busy for call in calls):
            return []
        return [
            Doubt(
                "nobody was told that it is out of stock: the floor was never tried",
                "more users, or less stock",
            )
        ]
