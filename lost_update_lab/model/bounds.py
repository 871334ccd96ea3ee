"""What a search is allowed to do, and what it may leave out. Printed with every verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from time import perf_counter

#: one millisecond in the explorer's unit of time: whole microseconds
MS = 1_000
SECOND = 1_000 * MS
#: what a worker's monotonic clock shows at the start of every schedule, in seconds (its wall clock: epoch.py)
MONOTONIC = 1_000.0
#: seconds for a search that begins again at the end of its budget
LEAST = 5.0


class Reduction(StrEnum):
    """FULL: a state that was seen before is not explored again, a step that touches nothing shared does not branch,
    and polls that cannot change anything do not branch either. NONE: every order of every step, the referee."""

    FULL = "full"
    NONE = "none"


class Fault(StrEnum):
    """What the explorer can do to a worker or a server between two steps."""

    CRASH = "crash"
    PAUSE = "pause"
    RENEWAL_DIES = "renewal-dies"
    RENEWAL_LIVES = "worker-dies-renewal-lives"
    FAILOVER = "failover"
    LOST_REPLY = "lost-reply"
    CLOCK_JUMP = "clock-jump"


#: of these kinds together, no more than so many in one schedule
Most = tuple[tuple[frozenset[Fault], int], ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """`slack`: how late a thread may act without a fault. `jump`: how far a clock jumps. `patience`: how long waiters
    that poll in vain are watched beyond the longest lease before they count as stalled. All three in µs.
    `aside`: in a pause during which nothing ends, neither a wait nor a lease of a server, time moves on to here (µs; 0:
    there is no such pause). A lease may be a time in a row, which only the workers' clocks show.
    `tries`: how many tries a waiter may make when each of them changes something.
    `budget`: seconds of real time; None: no limit. `recorded`: what workers are known to do is not computed again by
    their own code (recording.py). `in_memory`: schedules of known steps are not executed (in_memory_run.py).
    `fed`: where only one worker's code has to run, it is told what is known (fed_run.py)."""

    workers: int = 2
    faults: int = 1
    slack: int = 100 * MS
    jump: int = 60 * SECOND
    patience: int = 60 * SECOND
    aside: int = 0
    tries: int = 60
    kinds: frozenset[Fault] = frozenset(Fault)
    most: Most = ()
    reduction: Reduction = Reduction.FULL
    budget: float | None = None
    recorded: bool = True
    in_memory: bool = True
    fed: bool = True
    #: the workers of the second half stand for those of the first half again: each begins when its other one crashes …
    redelivers: bool = False
    #: … or at any time
    twice: bool = False
    #: what follows once a server aborts a transaction to end a deadlock; False: the schedule is left there
    deadlocks: bool = True
    #: from when the budget counts, on the performance counter; 0: from the beginning of the search
    begun: float = 0.0

    def again(self, begun: float) -> Bounds:
        """Those of a search that begins again, after one that began at `begun` (0: there was none). At least LEAST
        seconds are left."""
        if self.budget is None or not begun:
            return self
        return replace(self, begun=max(begun, perf_counter() + min(LEAST, self.budget) - self.budget))

    def allow(self, spent: Sequence[Fault], fault: Fault, count: int = 1) -> bool:
        """May so many more of this fault come in a schedule, besides those that are `spent` or begun?"""
        if len(spent) + count > self.faults:
            return False
        of = [(kinds, most) for kinds, most in self.most if fault in kinds]
        return all(sum(each in kinds for each in spent) + count <= most for kinds, most in of)

    def stands_for(self, index: int) -> int | None:
        """The worker whose task this one does again. None: it has a task of its own."""
        callers = self.workers // 2
        return index - callers if self.redelivers and index >= callers else None

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 8:
            raise ValueError(f"workers: 1 to 8, not {self.workers}")
        if not 0 <= self.faults <= 5:
            raise ValueError(f"faults: 0 to 5 in one schedule, not {self.faults}")
        if self.slack < 0:
            raise ValueError(f"slack: 0 ms or more, not {self.slack / MS:g}")
        if self.budget is not None and self.budget <= 0:
            raise ValueError(f"budget: seconds, above 0, not {self.budget:g}")
