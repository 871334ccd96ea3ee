"""How a book went: the expected and the final balance after each moment, from the entries of its accounts.

expected   the openings and every amount that was written so far
final      the balances as the latest write left them: what a write overwrote is not in it
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from math import inf
from typing import NamedTuple

from ledger.reconcile.rows import AccountRow, ChainRow

Accounts = Iterable[tuple[AccountRow, Iterable[ChainRow]]]

#: seconds that are told apart
STEP = 0.02
MOMENTS = 60


class PeriodEnd(NamedTuple):
    """The end of a period. `after`: seconds since the first write; `postings`: entries a second in the period."""

    after: float
    postings: float
    expected: int
    final: int

    @property
    def missing(self) -> int:
        return self.expected - self.final


class Course:
    """The sums for each short step of time, of the accounts that pass by: who reconciles a book reads them anyway.

    `most_entries`: nothing is drawn of a book that has more. Memory holds one account's entries at a time.
    """

    def __init__(self, most_entries: float = inf) -> None:
        self.most_entries = most_entries
        self._begin()

    def _begin(self) -> None:
        self.opening = self.seen = 0
        self.entries: Counter[int] = Counter()
        self.amounts: Counter[int] = Counter()
        self.changes: Counter[int] = Counter()

    def passing(self, accounts: Accounts) -> Iterator[tuple[AccountRow, Iterable[ChainRow]]]:
        """Yield the same accounts. What passed by before is forgotten."""
        self._begin()
        for account, rows in accounts:
            if self.seen > self.most_entries:
                yield account, rows
                continue
            kept = list(rows)
            self._add(account, kept)
            yield account, kept

    def _add(self, account: AccountRow, rows: list[ChainRow]) -> None:
        self.opening += account.opening
        self.seen += len(rows)
        balance = account.opening
        for row in sorted(rows, key=lambda row: (row.seq, _seconds(row))):
            step = int(_seconds(row) / STEP)
            self.entries[step] += 1
            self.amounts[step] += row.amount
            self.changes[step] += row.balance_after - balance
            balance = row.balance_after

    def moments(self, most: int = MOMENTS) -> list[PeriodEnd]:
        """Return up to `most` moments after that of the opening; none if nothing was written, or too much."""
        if not self.entries or self.seen > self.most_entries:
            return []
        first, last = min(self.entries), max(self.entries)
        size = -(-(last - first + 1) // most)
        expected = final = self.opening
        found = [PeriodEnd(0.0, 0.0, expected, final)]
        for start in range(first, last + 1, size):
            steps = range(start, start + size)
            expected += sum(self.amounts[step] for step in steps)
            final += sum(self.changes[step] for step in steps)
            written = sum(self.entries[step] for step in steps)
            found.append(PeriodEnd((start + size - first) * STEP, written / (size * STEP), expected, final))
        return found


def course(accounts: Accounts, most: int = MOMENTS) -> list[PeriodEnd]:
    """Return up to `most` moments after that of the opening; none if nothing was written."""
    went = Course()
    deque(went.passing(accounts), maxlen=0)
    return went.moments(most)


def _seconds(row: ChainRow) -> float:
    """Return when a row was written, by a clock that all rows of one store share."""
    at = row.written_at
    return at.timestamp() if isinstance(at, datetime) else at / 1e6
