"""Execute one schedule, as a chooser decides it, and judge it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lost_update_lab.harness import Harness
from lost_update_lab.model.commands import Step
from lost_update_lab.model.transitions import Transition
from lost_update_lab.runs.found import Extent, Found, Size
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule.schedule_id import Diverged
from lost_update_lab.schedule.world import Chooser, World

#: the most executions of one schedule: one may load a script, and the next another script that only then comes up
LOADS = 5


def play(
    harness: Harness,
    watched: dict[bytes, int],
    choose: Chooser,
    trace: Callable[[World, Step], None] | None = None,
    played: bool = False,
) -> tuple[Found, Run]:
    """Execute one schedule and judge it. Execute it again if a script had to be loaded: from then on the server has it.
    `trace` hears of each step once it is done. `played`: from the recording (Harness.run). `choose` starts over when a
    run comes to its first decision."""
    noted = Noted(choose)
    once = partial(harness.run, noted, watched, trace, real=() if played else None)
    while True:
        try:
            run = harness.until_known(once)
        except Diverged:
            if not noted.begun[-1].warming_up or len(noted.begun) == LOADS:
                raise
            continue
        if not run.warming_up or len(noted.begun) >= LOADS:
            break
    return noted.found(harness, run), run


class NotSmaller(Exception):
    """This schedule can no longer become smaller."""


class Noted:
    """A chooser that writes down what another chooser takes. Raises NotSmaller."""

    def __init__(self, choose: Chooser, below: Size | None = None) -> None:
        self.choose, self.below = choose, below
        self.transitions: list[Transition] = []
        self.choices: list[int] = []
        self.extent = Extent()
        self.begun: list[World] = []

    def __call__(self, run: World, offered: Sequence[Transition]) -> int:
        if run.decisions == 1:
            self.transitions, self.choices, self.extent = [], [], Extent()
            self.begun.append(run)
        choice = self.choose(run, offered)
        if not run.stuck:
            self.choices.append(choice)
            self.transitions.append(offered[choice])
            self.extent.add(offered[choice])
            if self.below and self.extent.size(run.spent) >= self.below:
                raise NotSmaller
        return choice

    def found(self, harness: Harness, run: World) -> Found:
        transitions, spent = tuple(self.transitions), tuple(sorted(run.spent))
        return Found(harness.judge(run), spent, tuple(self.choices), transitions, tuple(run.steps))
