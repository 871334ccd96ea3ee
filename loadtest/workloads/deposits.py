"""deposits: every client deposits as fast as it can, on one hot account or spread over many.

Law: every acknowledged amount is in the balance. The amounts are random, so that each loss has its own amount.
"""

from __future__ import annotations

import random
from typing import ClassVar

from loadtest.workloads.base import Legs, Opening, Turns, Workload, whole


class Deposits(Workload):
    """Deposits of 1 to `most` minor units."""

    slug = "deposits"
    title = "Deposits"
    law = "every acknowledged deposit is in the balance, once"
    turns: ClassVar[Turns | None] = Turns(
        (Opening("A0001", 100),), lambda index: (("A0001", 10 * (index + 1)),)
    )
    options = {"most": "the largest deposit, minor units (10000)"}

    def __init__(self, accounts: int = 1, most: int = 10_000) -> None:
        """`most`: the largest deposit in minor units. With 1, every deposit is +1."""
        super().__init__(accounts)
        self.most = whole("most", most, 1)

    def openings(self) -> list[Opening]:
        return [Opening(number) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        return ((self.any_account(chance), chance.randint(1, self.most)),)
