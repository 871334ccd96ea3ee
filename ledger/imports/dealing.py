"""Deal the accounts of a load out to groups: all lines of an account go to the same group, in their order.

    the first lines    A A A B B C      those with the most lines first, each to the group that has the fewest
    groups             0: A   1: B C
    the lines behind   B D A …          who comes late (D) goes to the group with the fewest lines so far, and stays

The first line can be sent before the whole load is counted. The price: if later lines are for other accounts than the
first ones, or in other proportions, the groups are less even than they could be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

ACCOUNT = itemgetter(1)  # of a BulkLine


class BulkLine(NamedTuple):
    """One request: its idempotency key, an account's number, an amount in minor units."""

    key: str
    account: str
    amount: int


class Deal:
    """`group_of`: the group of each account seen so far."""

    def __init__(self, groups: int) -> None:
        self.group_of: dict[str, int] = {}
        self._held = [0] * groups

    def shares(self, lines: Sequence[BulkLine]) -> list[list[BulkLine]]:
        """Return the lines of each group. The first call counts its lines to choose the groups."""
        if not self.group_of:
            self._count(lines)
        shares: list[list[BulkLine]] = [[] for _ in self._held]
        put = {number: shares[group].append for number, group in self.group_of.items()}
        for line in lines:
            try:
                put[line.account](line)
            except KeyError:
                group = self._fewest(shares)
                self.group_of[line.account], put[line.account] = group, shares[group].append
                shares[group].append(line)
        self._held = [held + len(share) for held, share in zip(self._held, shares, strict=True)]
        return shares

    def _count(self, lines: Sequence[BulkLine]) -> None:
        held = [0] * len(self._held)
        for number, count in Counter(map(ACCOUNT, lines)).most_common():
            self.group_of[number] = group = held.index(min(held))
            held[group] += count

    def _fewest(self, shares: Sequence[Sequence[BulkLine]]) -> int:
        return min(range(len(shares)), key=lambda group: self._held[group] + len(shares[group]))
