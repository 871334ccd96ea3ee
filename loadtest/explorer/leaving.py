"""When claims are to be decided: which kinds of faults need not be searched to their end?

A fault that the subject does not claim to withstand is decided by the first schedule with it alone that loses money.
Where none is found soon, or only one that stalls, no claim depends on it: such a kind is left after some seconds.
"""

from __future__ import annotations

import time

from loadtest.explorer.bounds import Fault
from loadtest.explorer.result import Faults, Result

_now = time.perf_counter
WITHIN = 3.0  # seconds for a fault that is not claimed
#: there is hardly a graver word left to be found
_MONEY = frozenset({"created", "lost", "oversold"})


class Leaving:
    """`unclaimed`: the faults that may be left; they come last."""

    def __init__(self, unclaimed: frozenset[Fault], result: Result) -> None:
        self.unclaimed, self.result = unclaimed, result
        self._kind: Faults = ()
        self._began = _now()

    def order(self, kind: Faults) -> tuple[int, bool, Faults]:
        """Which kind is searched before which."""
        return len(kind), not self.unclaimed.isdisjoint(kind), kind

    def settled(self, kind: Faults) -> bool:
        """Need this kind, which is searched now, not be searched any further?"""
        if kind != self._kind:
            self._kind, self._began = kind, _now()
        mine = self.unclaimed.intersection(kind)
        if any(self.result.under(fault) in _MONEY for fault in mine):
            return True
        return bool(mine) and _now() - self._began > WITHIN
