"""The contract of a workload: what the clients do. Pure Python: the swarm uses it, and knows no Django."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ledger.reconcile import Operation
from loadtest.laws import Breach


@dataclass(frozen=True, slots=True)
class Opening:
    """An account as a book is opened with it. Amounts in minor units."""

    account: str
    opening: int = 0
    floor: int | None = None


Legs = tuple[tuple[str, int], ...]


class Workload(ABC):
    """What the clients of a trial do to its accounts."""

    slug: ClassVar[str]
    title: ClassVar[str]
    #: what must hold at the end, in one sentence
    law: ClassVar[str]

    def __init__(self, accounts: int = 1, **options: Any) -> None:
        """`accounts`: 1 is the hot spot, more spread the callers. Raises ValueError for options it has not."""
        if not 1 <= accounts <= 10_000:
            raise ValueError(f"accounts: 1 to 10000, not {accounts}")
        if options:
            raise ValueError(f"the workload {self.slug} has no option {', '.join(sorted(options))}")
        self.accounts = accounts

    def numbers(self) -> list[str]:
        """Return the numbers of its accounts."""
        return [f"A{number:04d}" for number in range(1, self.accounts + 1)]

    def any_account(self, chance: random.Random) -> str:
        """Return the number of one of its accounts."""
        return f"A{chance.randrange(self.accounts) + 1:04d}"

    @abstractmethod
    def openings(self) -> list[Opening]:
        """Return the accounts of a fresh book."""

    @abstractmethod
    def posting(self, chance: random.Random) -> Legs:
        """Return the next posting of one client: (account, amount) of each account it changes; () only looks."""

    def complaint(self, balances: Mapping[str, int]) -> str:
        """What breaks the law in the `balances` that a reader saw at one moment during the run; "" if nothing."""
        return ""

    def breaches(self, operations: Mapping[str, Sequence[Operation]]) -> list[Breach]:
        """What breaks the workload's own law in what the clients saw, beyond what the books say."""
        return []
