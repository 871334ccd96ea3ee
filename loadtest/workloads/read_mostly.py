"""read-mostly: a few clients write, many read. This is where optimistic locking pays.

Law: the books; and no client sees an account go back: a reader that saw version 7 never sees version 6 later.

    A: read (version 6)
    B: read (version 6), write version 7, … further writes up to version 9
    C: sees version 9
    A: write version 7                                  C looks again and sees version 7: three writes are gone

A version check costs nothing while no other client writes in between, and a reader never waits. A pessimistic lock
costs each writer its round trips, even without any contention. `reads` is the share of looks: compare
`optimistic-version` with `select-for-update` at 0.5, 0.9 and 0.99.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from loadtest.history.calls import Call
from loadtest.verdict.laws import Breach, forward_law
from loadtest.workloads.base import Legs, Opening, Workload, share


class ReadMostly(Workload):
    """A share of `reads`; the rest are deposits of 1 to 10000."""

    slug = "read-mostly"
    title = "Mostly reads"
    law = "every acknowledged deposit is in the balance, once, and no reader sees an older state after a newer one"
    options = {"reads": "share of operations that only read (0.9)"}

    def __init__(self, accounts: int = 1, reads: float = 0.9) -> None:
        """`reads`: share of operations that only read."""
        super().__init__(accounts)
        self.reads = share("reads", reads)

    def openings(self) -> list[Opening]:
        return [Opening(number) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        if chance.random() < self.reads:
            return ()
        return ((self.any_account(chance), chance.randint(1, 10_000)),)

    def look(self, chance: random.Random) -> str:
        return f"/accounts/{self.any_account(chance)}"

    def seen(self, answer: Mapping[str, Any]) -> int:
        return int(answer["version"])

    def breaches(self, calls: Sequence[Call]) -> list[Breach]:
        return forward_law(calls)
