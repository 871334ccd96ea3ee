"""Did everything stall? The longest time in which some client waited and none was served.

served ······························ asked ──────────────── served
       no client asks: no standstill     └ the standstill, if any ┘
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from ledger.reconcile import ClientOutcome
from loadtest.history.calls import Call
from loadtest.verdict.evidence import Stall

#: seconds that count as a stall: some client waits, and none gets an answer from the business
STALLED_AFTER = 10.0


def stalled_after(poll: float | None) -> float:
    """Return how many seconds count as a stall if a waiting lock polls every `poll` seconds (None: as published). A
    lock that polls as rarely as configured has not stalled."""
    return max(STALLED_AFTER, 2 * (poll or 0.0))


def longest_stall(
    calls: Sequence[Call], after: float = STALLED_AFTER, until: float | None = None
) -> Stall | None:
    """Return the longest stall of at least `after` seconds, or None. It has recovered if a client was served at its
    end. `until`: the end of the observation, if some clients still waited then."""
    if not calls:
        return None
    served = sorted(call.ended for call in calls if _served(call))
    begin = min(call.started for call in calls)
    end = max([call.ended for call in calls if call.answered] + [until or begin])
    marks = [begin, *served, end]
    gap, start, stop = max(_waits(calls, marks), default=(0.0, begin, begin))
    if gap < after:
        return None
    waiting = sum(call.started < start + gap and call.ended > start for call in calls)
    return Stall(
        f"no operation was acknowledged for {gap:.1f} s while {waiting} were waited for",
        gap,
        recovered=stop in served,
    )


def _waits(calls: Sequence[Call], marks: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    """Yield (seconds, start, end) for each time between two `marks` in which a client waited. It starts with the first
    request that was unanswered at that mark or sent after it. O(n log n)."""
    by_end = sorted(calls, key=lambda call: call.ended)
    ends = [call.ended for call in by_end]
    #: the earliest start among the calls that ended no sooner
    first = list(accumulate((call.started for call in reversed(by_end)), min))[::-1]
    for a, b in pairwise(marks):
        unanswered = bisect_right(ends, a)
        if unanswered < len(ends):
            start = max(a, first[unanswered])
            yield b - start, start, b


def _served(call: Call) -> bool:
    """Was the call served? "Out of stock" is an answer too, "busy" is not."""
    return call.outcome is ClientOutcome.OK or (call.outcome is ClientOutcome.FAIL and not call.busy)
