"""When claims are to be decided: which kinds of faults need not be searched to their end?

A fault that the subject does not claim to withstand is decided by the first schedule with it alone that loses money.
Where none is found soon, or only one that stalls, no claim depends on it: such a kind is left after some steps. Steps,
and not seconds: every machine leaves it at the same schedule.
"""

from __future__ import annotations

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.subject import STALLED
from lost_update_lab.runs.found import Faults, Result

#: steps of the schedules with a fault that is not claimed, and of those where one of them stalls
ENOUGH, ENOUGH_STALLED = 8_000, 4_000


class Leaving:
    """`unclaimed`: the faults that may be left; they come last."""

    def __init__(self, unclaimed: frozenset[Fault], result: Result) -> None:
        self.unclaimed, self.result = unclaimed, result
        #: graver than a stall: there is hardly a graver word left to be found
        self._grave = frozenset(result.gravity[: result.gravity.index(STALLED)])
        self._kind: Faults = ()
        self._began = 0

    def order(self, kind: Faults) -> tuple[int, bool, Faults]:
        """Which kind is searched before which."""
        return len(kind), not self.unclaimed.isdisjoint(kind), kind

    def settled(self, kind: Faults) -> bool:
        """Need this kind, which is searched now, not be searched any further?"""
        if kind != self._kind:
            self._kind, self._began = kind, self.result.steps
        mine = self.unclaimed.intersection(kind)
        words = {self.result.under(fault) for fault in mine}
        enough = ENOUGH_STALLED if STALLED in words else ENOUGH
        return bool(mine) and (bool(words & self._grave) or self.result.steps - self._began > enough)
