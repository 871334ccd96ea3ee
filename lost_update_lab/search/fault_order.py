"""Faults are put off: first every schedule without any, then those with a crash, those with a pause, kind after kind.

The schedules are the same as in plain depth-first order. But a search that is cut short has then finished some kinds,
and what it says of those is decided.

When claims are to be decided, some kinds of faults need not be searched to their end. A fault that the system does not
claim to withstand is decided by the first schedule that loses money with this fault alone. If no such schedule is found
soon, or only one that stalls, no claim depends on it, and the kind is left after a number of steps. The limit counts
steps and not seconds, so that every machine leaves the kind at the same schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import STALLED
from lost_update_lab.runs.found import Faults, SearchResult
from lost_update_lab.schedule import faults
from lost_update_lab.search.stack import Branch

#: how many steps of schedules with an unclaimed fault are enough; and how many if one of the schedules stalls
ENOUGH, ENOUGH_STALLED = 8_000, 4_000


class UntilDecided:
    """`unclaimed`: the faults that may be left. They come last."""

    def __init__(self, unclaimed: frozenset[Fault], result: SearchResult) -> None:
        self.unclaimed, self.result = unclaimed, result
        #: graver than a stall: hardly a graver word is left to be found
        self._grave = frozenset(result.gravity[: result.gravity.index(STALLED)])
        self._kind: Faults = ()
        self._began = 0

    def order(self, kind: Faults) -> tuple[int, bool, Faults]:
        """The order in which the kinds are searched."""
        return len(kind), not self.unclaimed.isdisjoint(kind), kind

    def settled(self, kind: Faults) -> bool:
        """May the search leave this kind, which it searches now?"""
        if kind != self._kind:
            self._kind, self._began = kind, self.result.steps
        mine = self.unclaimed.intersection(kind)
        words = {self.result.under(fault) for fault in mine}
        enough = ENOUGH_STALLED if STALLED in words else ENOUGH
        return bool(mine) and (bool(words & self._grave) or self.result.steps - self._began > enough)


class FaultOrder:
    """Paths that end with a fault, ordered by all the faults that are begun or spent then."""

    def __init__(self, until_decided: UntilDecided) -> None:
        self.until_decided = until_decided
        #: the faults of the schedules that are searched now
        self.faults: Faults = ()
        #: kinds that were not searched to their end, because that is not needed
        self.left: set[Faults] = set()
        self._waiting: dict[Faults, list[list[Branch]]] = {}
        self._new: list[tuple[Faults, list[Branch]]] = []
        self._copies: list[tuple[Branch, int, Branch]] = []
        self._at_its_end = False

    def put_off(self, path: list[Branch]) -> None:
        """Put off all faults that may come at the last decision of this path."""
        last = path[-1]
        costly = [place for place, transition in enumerate(last.transitions) if transition.cost]
        leading = list(self._leading_to(path)) if costly else []
        for place in costly:
            transition = last.transitions[place]
            then = tuple(sorted([*self.faults, *[faults.fault_of(transition)] * transition.cost]))
            self._new.append((then, [*leading, replace(last, taken=place, last=place)]))

    def _leading_to(self, path: list[Branch]) -> Iterator[Branch]:
        """The decisions before the last one, as they are taken now. (Paths that begin alike share them.)"""
        for depth, branch in enumerate(path[:-1]):
            of, taken, copy = self._copies[depth] if depth < len(self._copies) else (None, 0, branch)
            if of is not branch or taken != branch.taken:
                copy = replace(branch, last=branch.taken)
                self._copies[depth:] = [(branch, branch.taken, copy)]
            yield copy

    def keep(self, kept: bool = True) -> None:
        """Keep the paths that the run has put off. Not `kept`: the run is executed again."""
        for then, path in self._new if kept else ():
            self._waiting.setdefault(then, []).append(path)
        self._new.clear()

    def next(self) -> list[Branch] | None:
        """The path with which the search goes on. None: none is left."""
        while self._waiting:
            if self.faults not in self._waiting:
                self.faults = min(self._waiting, key=self.until_decided.order)
            if not self.leave():
                paths = self._waiting[self.faults]
                path = paths.pop()
                if not paths:
                    del self._waiting[self.faults]
                return path
        self._at_its_end = True
        return None

    @property
    def waiting(self) -> int:
        """The number of paths that are put off."""
        return sum(map(len, self._waiting.values()))

    def leave(self) -> bool:
        """Leave the kind that is searched now, if it need not be searched any further. Returns whether it was left."""
        if not self.until_decided.settled(self.faults):
            return False
        self._waiting.pop(self.faults, None)
        self.left.add(self.faults)
        return True

    def decided(self) -> set[Fault | None]:
        """The faults (None: no fault) for which every schedule with that fault alone was executed."""
        left = [*self.left, *([] if self._at_its_end else [self.faults, *self._waiting])]
        return {fault for fault in (None, *Fault) if all(set(each) - {fault} for each in left)}
