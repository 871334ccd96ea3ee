"""What the clients of a trial saw, in numbers, and how many of their operations truly overlapped.

A trial in which nobody met anybody proves nothing about a lock. Two operations overlap when both were under
way at one moment on one account, as the clients' clock has it; touching end to start is no overlap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from ledger.reconcile import Operation, Outcome, strongest


def overlaps(operations: Iterable[Operation]) -> int:
    """Return how many of one account's operations overlapped another one. O(n log n).

    An operation that ends when or before it starts (a clock that jumped) has no duration and meets nobody. Nor
    does one that never ended (its client was killed): it would make overlaps of all that came after it.
    """
    spans = [(each.started, each.ended) for each in operations if each.started < each.ended < inf]
    starts = sorted(start for start, _ in spans)
    ends = sorted(end for _, end in spans)
    # those that began before my end, less those that had ended by my start, are those that I met, and me
    return sum(bisect_left(starts, end) - bisect_right(ends, start) > 1 for start, end in spans)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Counts over all accounts of a trial. A posting of two accounts counts once on each; a key that a client
    sent several times counts once, with its strongest outcome."""

    acknowledged: int = 0
    failed: int = 0
    unknown: int = 0
    overlaps: int = 0

    @classmethod
    def of(cls, operations: Mapping[str, Sequence[Operation]]) -> Observed:
        """Count the clients' `operations`, given by account number."""
        counts = dict.fromkeys(Outcome, 0)
        for seen in operations.values():
            for each in strongest(seen).values():
                counts[each.outcome] += 1
        return cls(
            acknowledged=counts[Outcome.OK],
            failed=counts[Outcome.FAIL],
            unknown=counts[Outcome.INFO],
            overlaps=sum(overlaps(seen) for seen in operations.values()),
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What those who asked were told, in postings; of a trial with a hazard, those whose answer came after it began:
    what was granted before it does not show that anything is granted after it. `declined`: by the business ("out of
    stock"). `refused`: a lock or a server was not available. `unknown`: `info`, with an answer; a killed client's
    posting has none.
    """

    acknowledged: int = 0
    declined: int = 0
    refused: int = 0
    unknown: int = 0

    @property
    def in_vain(self) -> int:
        """How many asked and got no answer of the business."""
        return self.refused + self.unknown
