"""Does a waiter have a memory? Watch it poll in vain, for longer than any lease, before polls may be slept through.

One worker stops after its first, second … command, and stands there; its leases do not end. The others go on. Those
that poll are watched for the longest lease and the patience, with every poll really executed. A waiter that does
nothing else in all that time may sleep through such polls in the search, for as long as it was watched. One that gives
up, or that goes in without the lock after its third try, stops being the same poll at that moment: from there on the
search executes its polls again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import SECOND, Bounds, Reduction
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.schedule import virtual_clock
from lost_update_lab.schedule.world import World

MOST_STEPS = 60


def calibrate_polls(harness: Harness) -> dict[bytes, int]:
    """Return for how long each kind of poll was watched, in µs of virtual time. The harness then knows whether any
    worker looks at a wall clock."""
    harness.all_begin = True
    try:
        return harness.until_known(partial(_calibrated, harness))
    finally:
        harness.all_begin = False


def _calibrated(harness: Harness) -> dict[bytes, int]:
    watched: dict[bytes, int] = {}
    harness.looks = looks = harness.known_to_look
    for _ in range(2):  # clients are made, scripts are loaded: from now on every run is like the other
        if harness.recording:
            harness.recording.begin_again()
        harness.longest = max(harness.longest, harness.run(_quietest, {}).longest)
    if harness.recording:
        harness.recording.warm = True
    for index in range(harness.bounds.workers if _matters(harness.bounds) else 0):
        for steps in range(1, MOST_STEPS):
            stopped = _Stopped(index, steps)
            run = harness.run(stopped.choose, {})
            looks |= run.wall_clock_read
            harness.counting |= run.gave_up
            for kind, time in run.learned.items():
                watched[kind] = max(watched.get(kind, 0), time)
            if not stopped.stands or len(run.learned) >= harness.bounds.workers - 1 or stopped.differ:
                break
    harness.looks = looks
    return watched


def _matters(bounds: Bounds) -> bool:
    """Where every poll is executed, and no clock can jump, the calibration is not needed."""
    return bounds.reduction is Reduction.FULL or bounds.faults > 0


def _quietest(run: World, transitions: Sequence[Transition]) -> int:
    run.stuck = virtual_clock.only_polls(run)
    return 0


def _through_all_pauses(run: World) -> int:
    """Each pause of a schedule may last as long as one alone, and its waiters poll on all that time."""
    bounds, more = run.bounds, max(run.bounds.faults - 1, 0)
    polls = [
        2 * run.longest if task.history.in_two else task.period
        for task in run.tasks
        if task.vain_since is not None
    ]
    first = 2 * max(polls, default=0)  # the time until one is seen to be in vain
    return first + bounds.patience + more * (bounds.patience + run.longest + SECOND + 2 * bounds.slack)


class _Stopped:
    """A chooser: one worker takes some steps and then stands still, while the others go on."""

    def __init__(self, index: int, steps: int) -> None:
        self.index, self.steps = index, steps
        self.stands = False
        #: each try of the others differed from the last (with a new token): there are no polls to sleep through
        self.differ = False

    def choose(self, run: World, transitions: Sequence[Transition]) -> int:
        worker = run.workers[self.index]
        own = [
            i for i, o in enumerate(transitions) if o.kind is Kind.STEP and run.task(o.who).worker is worker
        ]
        if own and not self.stands and sum(step.worker == worker.name for step in run.steps) < self.steps:
            return own[0]
        if own and not self.stands:
            self.stands = worker.paused = run.leases_stand = True
        run.patience = _through_all_pauses(run)
        kinds = {Kind.STEP, Kind.VICTIM, Kind.CANCEL, Kind.TICK}
        if virtual_clock.next_timer(run) is None:  # all timers that exist stand still with it
            kinds.discard(Kind.TICK)
        others = [i for i, o in enumerate(transitions) if o.kind in kinds and i not in own]
        if not others or virtual_clock.only_polls(run):
            run.stuck = True
            self.differ = all(each.main.history.tries > 0 for each in run.workers if each is not worker)
            return 0
        return others[0]
