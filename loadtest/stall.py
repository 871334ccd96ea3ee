"""Did everything stand still? The longest time in which somebody waited and nobody was served."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ledger.reconcile import Outcome
from loadtest.evidence import Stall
from loadtest.history import Call

#: seconds without any answer of the business, though some were asked for, that count as a stall
STALLED_AFTER = 10.0


def longest_stall(calls: Sequence[Call], after: float = STALLED_AFTER) -> Stall | None:
    """Return the longest stand-still of at least `after` seconds, or None."""
    if not calls:
        return None
    served = sorted(call.ended for call in calls if _served(call))
    begin = min(call.started for call in calls)
    end = max([call.ended for call in calls if call.answered], default=begin)
    marks = [begin, *served, end]
    gap, start = max(((b - a, a) for a, b in pairwise(marks)), default=(0.0, begin))
    if gap < after:
        return None
    waiting = sum(call.started < start + gap and call.ended > start for call in calls)
    return Stall(
        f"no operation was acknowledged for {gap:.1f} s while {waiting} were waited for",
        gap,
        recovered=start + gap < end,
    )


def _served(call: Call) -> bool:
    """ "Out of stock" is an answer too; "busy" is none."""
    return call.outcome is Outcome.OK or (call.outcome is Outcome.FAIL and not call.busy)
