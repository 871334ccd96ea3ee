"""read-mostly: many look, few pay in. Where optimistic locking pays: nothing is locked for those who only look.

Law: that of the deposits.
"""

from __future__ import annotations

import random
from typing import Any

from loadtest.workloads.base import Legs
from loadtest.workloads.deposits import Deposits


class ReadMostly(Deposits):
    """`deposits` among which a `share` of the operations only reads."""

    slug = "read-mostly"
    title = "Read mostly"

    def __init__(self, accounts: int = 1, share: float = 0.9, most: int = 10_000, **options: Any) -> None:
        """`share`: of reads, from 0 to below 1."""
        super().__init__(accounts, most, **options)
        if not 0 <= share < 1:
            raise ValueError(f"share: 0 to below 1, not {share}")
        self.share = share

    def posting(self, chance: random.Random) -> Legs:
        return () if chance.random() < self.share else super().posting(chance)
