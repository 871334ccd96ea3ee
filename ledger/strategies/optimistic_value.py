"""optimistic-value: write only if the balance still equals the one that was read. Same number, different state.

    A: SELECT → 100
    B:               UPDATE … SET balance = 110 WHERE balance = 100 → 1 row
    C:               UPDATE … SET balance = 100 WHERE balance = 110 → 1 row (a withdrawal)
    A: UPDATE … SET balance = 120 WHERE balance = 100 → 1 row        A believes that nothing happened

    here the sum is right by luck (100 + 10 − 10 + 20); whatever A had decided on the history is not: its entry
    names the opening as its parent, and B's and C's entries are on no chain.

Guarantees   the balance is never overwritten by one that was computed from a different balance.
Breaks when  the balance changes and changes back between read and write (ABA): deposits and withdrawals on one
             account. With deposits alone it cannot happen.
Costs        as `optimistic-version`, without the column.
Source       the compare-and-swap folklore; Treiber 1986 names the ABA problem. The remedy is a number that never
             repeats: `optimistic-version`.
"""

from __future__ import annotations

from typing import ClassVar

from ledger.strategies.optimistic_version import OptimisticVersion
from locks.hazards import Hazard


class OptimisticValue(OptimisticVersion):
    """`optimistic-version` that compares the balance itself."""

    slug = "optimistic-value"
    title = "Optimistic, by comparing the balance"
    source = "compare-and-swap on the value; Treiber 1986 on ABA (F9)"
    guarantees = "no write over a different balance"
    breaks_when = "the balance changes and changes back (ABA)"
    round_trips = "1 read, then 4 for each attempt"
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    compared = "balance"  # UPDATE … WHERE balance = the one that was read
