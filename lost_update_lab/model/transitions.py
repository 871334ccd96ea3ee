"""What may happen next. A schedule is the list of the transitions that were taken."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    STEP = "step"  # a task's pending command is executed
    TICK = "tick"  # time moves on to the next timer
    RESUME = "resume"  # a paused worker goes on
    STOP = "stop"  # no worker can go on, and no more faults come: the schedule ends here
    VICTIM = "victim"  # the server ends a deadlock by aborting this task's command
    CANCEL = "cancel"  # the client gives up this task's command, and the server learns of it before the command ends
    # faults
    PAUSE = "pause"  # these workers stand still, and time moves past them
    CRASH = "crash"
    RENEWAL_DIES = "renewal-dies"
    RENEWAL_LIVES = "worker-dies-renewal-lives"
    LOST_REPLY = "lost-reply"  # the command is executed, and the client sees an error
    LAG = "lag"  # from this write on, no write reaches the replica …
    FAILOVER = "failover"  # … which takes over: part of the same fault
    CLOCK_JUMP = "clock-jump"


FREE = frozenset({Kind.STEP, Kind.TICK, Kind.STOP, Kind.RESUME, Kind.VICTIM, Kind.CANCEL, Kind.FAILOVER})
#: transitions that execute a task's pending command
STEPS = frozenset({Kind.STEP, Kind.LOST_REPLY, Kind.LAG})


class Transition(NamedTuple):
    """`who`: the name of a task, of workers, or of a server. `number`: the amount, where there is one."""

    kind: Kind
    who: str = ""
    number: int = 0

    @property
    def cost(self) -> int:
        """How many faults it spends."""
        if self.kind in FREE:
            return 0
        return len(self.who.split("+")) if self.kind is Kind.PAUSE else 1

    def __str__(self) -> str:
        return f"{self.kind.value} {self.who}".strip() + (f" {self.number}" if self.number else "")
