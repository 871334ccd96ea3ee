"""stock: everybody wants the same articles, and there are fewer than are wanted.

Law: never below zero. "Out of stock" is a `fail`; an acknowledged piece that is not in the books is an oversale.
Check-then-decrement gives one piece to several callers (verdict `lost`: the first one's deduction is gone); a
counter in Redis that acknowledges, and is then forgotten by a restart or a failover, gives it twice as well.
"""

from __future__ import annotations

import random
from typing import Any

from loadtest.workloads.base import Legs, Opening, Workload


class Stock(Workload):
    """Deductions of 1 to `most` pieces from `stock` pieces of each article."""

    slug = "stock"
    title = "Stock"
    law = "no more pieces are given away than there are, and each acknowledged piece is in the books"

    def __init__(self, accounts: int = 1, stock: int = 200, most: int = 1, **options: Any) -> None:
        """`stock`: pieces of each article at the beginning; `most`: the largest deduction."""
        super().__init__(accounts, **options)
        if stock < 1 or most < 1:
            raise ValueError(f"stock and most: 1 or more, not {stock} and {most}")
        self.stock, self.most = stock, most

    def openings(self) -> list[Opening]:
        return [Opening(number, self.stock, 0) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        return ((self.any_account(chance), -chance.randint(1, self.most)),)
