"""Counts of what the clients of a trial saw, and of the operations that truly overlapped.

A trial without overlaps proves nothing about a lock. Two operations overlap if both were under way at one moment on one
account, by the clients' clock. If one ends exactly when the other starts, they do not overlap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from ledger.reconcile import ClientOperation, ClientOutcome, strongest


def overlaps(operations: Iterable[ClientOperation]) -> int:
    """Return how many of one account's operations overlapped another one. O(n log n).

    An operation that ends at or before its start (the clock jumped) has no duration and overlaps nothing. Neither does
    one that never ended (its client was killed), which would overlap everything after it.
    """
    spans = [(each.started, each.ended) for each in operations if each.started < each.ended < inf]
    starts = sorted(start for start, _ in spans)
    ends = sorted(end for _, end in spans)
    # those that began before this end, minus those that had ended by this start: the overlapping ones, and this one
    return sum(bisect_left(starts, end) - bisect_right(ends, start) > 1 for start, end in spans)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Counts over all accounts of a trial. A posting to two accounts counts once on each. A key that a client sent
    several times counts once, with its strongest outcome."""

    acknowledged: int = 0
    failed: int = 0
    unknown: int = 0
    overlaps: int = 0

    @classmethod
    def of(cls, operations: Mapping[str, Sequence[ClientOperation]]) -> Observed:
        """Count the clients' `operations`, given by account number."""
        counts = dict.fromkeys(ClientOutcome, 0)
        for seen in operations.values():
            for each in strongest(seen).values():
                counts[each.outcome] += 1
        return cls(
            acknowledged=counts[ClientOutcome.OK],
            failed=counts[ClientOutcome.FAIL],
            unknown=counts[ClientOutcome.INFO],
            overlaps=sum(overlaps(seen) for seen in operations.values()),
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ClientAnswers:
    """The answers that clients got, counted in postings.

    In a trial with a hazard, only answers after the hazard's start count: earlier ones do not show that the lock
    still works. `declined`: by the business ("out of stock"). `refused`: a lock or a server was unavailable.
    `unknown`: `info` with an answer; a killed client's posting has none.
    """

    acknowledged: int = 0
    declined: int = 0
    refused: int = 0
    unknown: int = 0

    @property
    def in_vain(self) -> int:
        """The number of answers that did not come from the business."""
        return self.refused + self.unknown
