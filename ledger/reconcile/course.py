"""How a book went: the expected and the final balance after each moment, from the entries of its accounts.

expected   the openings and every amount that was written so far
final      the balances as the latest write left them: what a write overwrote is not in it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from ledger.reconcile.rows import AccountRow, Row

#: seconds that are told apart
STEP = 0.02
MOMENTS = 60


class Moment(NamedTuple):
    """The end of a period. `after`: seconds since the first write; `postings`: entries a second in the period."""

    after: float
    postings: float
    expected: int
    final: int

    @property
    def missing(self) -> int:
        return self.expected - self.final


def course(accounts: Iterable[tuple[AccountRow, Iterable[Row]]], most: int = MOMENTS) -> list[Moment]:
    """Return up to `most` moments after that of the opening; none if nothing was written.

    Memory holds one account's entries at a time.
    """
    opening = 0
    entries: Counter[int] = Counter()
    amounts: Counter[int] = Counter()
    changes: Counter[int] = Counter()
    for account, rows in accounts:
        opening += account.opening
        balance = account.opening
        for row in sorted(rows, key=lambda row: (row.seq, _seconds(row))):
            step = int(_seconds(row) / STEP)
            entries[step] += 1
            amounts[step] += row.amount
            changes[step] += row.balance_after - balance
            balance = row.balance_after
    if not entries:
        return []
    first, last = min(entries), max(entries)
    size = -(-(last - first + 1) // most)
    expected = final = opening
    found = [Moment(0.0, 0.0, opening, opening)]
    for start in range(first, last + 1, size):
        steps = range(start, start + size)
        expected += sum(amounts[step] for step in steps)
        final += sum(changes[step] for step in steps)
        written = sum(entries[step] for step in steps)
        found.append(Moment((start + size - first) * STEP, written / (size * STEP), expected, final))
    return found


def _seconds(row: Row) -> float:
    """Return when a row was written, by a clock that all rows of one store share."""
    at = row.written_at
    return at.timestamp() if isinstance(at, datetime) else at / 1e6
