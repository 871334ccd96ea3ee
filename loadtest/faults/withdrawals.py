"""withdrawals: the workload of a cell whose strategy asks its server only for withdrawals.

Law: every acknowledged withdrawal is in the balance. The balances are large enough for every withdrawal.
"""

from __future__ import annotations

import random

from loadtest.workloads.base import LARGEST_SUM, Legs, Opening
from loadtest.workloads.deposits import Deposits


class Withdrawals(Deposits):
    """Deposits with the opposite sign, from accounts with a floor."""

    slug = "withdrawals"
    title = "Withdrawals"
    law = "every acknowledged withdrawal is in the balance, once"

    def openings(self) -> list[Opening]:
        return [Opening(number, LARGEST_SUM, 0) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        return tuple((account, -amount) for account, amount in super().posting(chance))
