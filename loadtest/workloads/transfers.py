"""transfers: between two accounts, while readers count all the money.

Law: the total is conserved *during* the run. A reader sees all accounts as they were at one moment, and every such
snapshot adds up to the opening total. A look at the end alone would miss money that is gone for a while.

    A1 100, A2 100, A3 100      X: A1 → A2, 10         Y: A1 → A3, 20
    X: read 100, 100            Y: read 100, 100
    X: write  90, 110           Y: write  80, 120       the total is 310: X's debit is overwritten, its credit not

A transfer takes two locks. Without a fixed order they deadlock:

    X: A1 → A2   locks A1 ………………… wants A2
    Y: A2 → A1             locks A2 ………………… wants A1        both wait for ever

Every strategy here locks in the order of the account numbers. `compare --workload transfers --unordered` lets the
locks and `select-for-update` lock in the order of the posting, as most people would first write it. The database
detects the circle after its deadlock_timeout and rolls one side back (`deadlocks` counts this; the money is right, the
callers wait). Nobody detects a circle of locks in Redis: both sides wait until a lease runs out, or for ever
(`stalled`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from ledger.reconcile import ClientOutcome
from loadtest.history.calls import Call
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.laws import Breach, conserved_law
from loadtest.workloads.base import Legs, Opening, Turns, Workload, share, whole

#: with only two accounts, both legs of a transfer are overwritten together, and the total shows nothing
LEAST_ACCOUNTS = 3
#: the most accounts that the ledger shows in one snapshot
MOST_ACCOUNTS = 1000


def _opposite(index: int) -> Legs:
    """Every other worker transfers in the other direction, so that their orders are opposite."""
    first, second = ("A0001", "A0002") if index % 2 == 0 else ("A0002", "A0001")
    return ((first, -10 * (index + 1)), (second, 10 * (index + 1)))


class Transfers(Workload):
    """Amounts of 1 to 100 between two accounts chosen at random; a share of looks at the whole book."""

    slug = "transfers"
    title = "Transfers"
    law = "every reader sees the same total at any moment"
    turns = Turns((Opening("A0001", 100), Opening("A0002", 100)), _opposite)
    options = {
        "opening": "balance of each account at the opening (10000)",
        "looks": "share of operations that count all the money (0.2)",
    }

    def __init__(self, accounts: int = 3, opening: int = 10_000, looks: float = 0.2) -> None:
        """`accounts`: at least 3 (fewer count as 3, the hot spot). `opening`: of each. `looks`: share of reads."""
        super().__init__(max(LEAST_ACCOUNTS, accounts))
        if accounts > MOST_ACCOUNTS:
            raise ValueError(f"accounts: a look at all of them shows up to {MOST_ACCOUNTS}, not {accounts}")
        self.opening = whole("opening", opening, 0)
        self.looks = share("looks", looks)

    def openings(self) -> list[Opening]:
        return [Opening(number, self.opening) for number in self.numbers()]

    def posting(self, chance: random.Random) -> Legs:
        if chance.random() < self.looks:
            return ()
        payer, payee = chance.sample(range(1, self.accounts + 1), 2)
        amount = chance.randint(1, 100)
        return ((f"A{payer:04d}", -amount), (f"A{payee:04d}", amount))

    def look(self, chance: random.Random) -> str:
        return ""

    def seen(self, answer: Mapping[str, Any]) -> int:
        return sum(account["balance"] for account in answer["accounts"])

    def breaches(self, calls: Sequence[Call]) -> list[Breach]:
        return conserved_law(calls, self.accounts * self.opening)

    def doubts(self, calls: Sequence[Call]) -> list[Doubt]:
        if any(call.look is not None and call.outcome is ClientOutcome.OK for call in calls):
            return []
        return [
            Doubt("no reader looked at the total during the run", "a larger share of looks, or a longer run")
        ]
