"""stock: every caller wants a piece, and there are fewer pieces than callers. How 14 of 10 prizes are given away.

Law: the stock is never below zero, neither in an entry nor in the sum of what was promised to the buyers. "Out of
stock" is a `fail`, and correct. A breach is `oversold`.

There are two routes to 14 of 10 prizes. The article gives the figure, but not the route:

1. Check, then decrement. The decrement itself is atomic, so the books balance; but both checked before it.

    stock 1   A: SELECT stock → 1, enough
              B: SELECT stock → 1, enough
              A: UPDATE stock = stock − 1 → 0        B: UPDATE stock = stock − 1 → −1

   This is the strategy `check-then-decrement`. If the write is not atomic either (`no-lock`), the stock is 0 at the
   end, and the pieces that were promised twice are lost updates: `lost`, and also `oversold`.

2. Acknowledged decrements are forgotten. The counter in Redis is atomic (`redis-atomic`, DECR) and never lets in too
   many buyers. But then the server restarts from an older snapshot, or a replica takes over that has not received the
   last decrements: those pieces are in stock again, and are sold again. No lock helps. It is `lost`, because
   acknowledged operations are off the chain, and `oversold` once the sum of the promises exceeds the stock.

tests/loadtest/trials/test_fourteen_prizes.py gives away 14 of 10 by either route.

Occasional deliveries (`deliveries`) keep the stock near zero, so that the floor is tested all the time and not just
once. 0 deliveries give the ten prizes of E6 (docs/sources.md).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ledger.reconcile import ClientOutcome
from loadtest.history.calls import Call
from loadtest.verdict.evidence import Doubt
from loadtest.workloads.base import Legs, Opening, Turns, Workload, share, whole

MOST_DELIVERED = 5


class Stock(Workload):
    """Each order takes one piece. A delivery brings 1 to 5."""

    slug = "stock"
    title = "Stock deduction"
    law = "no stock is below zero, neither in an entry nor in the sum of what was promised"
    turns = Turns((Opening("A0001", 1, 0),), lambda index: (("A0001", -1),))
    options = {
        "stock": "pieces of each article at the opening (10)",
        "deliveries": "share of operations that bring pieces (0.1)",
    }

    def __init__(self, accounts: int = 1, stock: int = 10, deliveries: float = 0.1) -> None:
        """`stock`: pieces at the opening. `deliveries`: share of the operations that bring pieces."""
        super().__init__(accounts)
        self.stock = whole("stock", stock, 0)
        self.deliveries = share("deliveries", deliveries)

    def openings(self) -> list[Opening]:
        return [Opening(number, self.stock, 0) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        brings = chance.random() < self.deliveries
        return ((self.any_account(chance), chance.randint(1, MOST_DELIVERED) if brings else -1),)

    def doubts(self, calls: Sequence[Call]) -> list[Doubt]:
        if any(call.outcome is ClientOutcome.FAIL and not call.busy for call in calls):
            return []
        return [
            Doubt(
                "no caller was told that it is out of stock: the floor was never tried",
                "more users, or less stock",
            )
        ]
