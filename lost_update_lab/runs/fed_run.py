"""A schedule in which one worker runs its real code, and is told what is known: no server is asked.

The recording knows what a worker does up to where it is told something new (memo/recording.py). What it does then only
its real code can say. But each reply that it has had, and the new one, are known: the memoised servers have answered
the same before. So its code is run again from its beginning, and fed with them:

    Ann's code    UPDATE … → known: 1 row   COMMIT → known   SELECT … → known, and new to Ann   → UPDATE …: recorded
    Bob           his steps, as they are recorded
    the servers   as in memory

It goes on a little beyond that, as the next schedules will ask for it, and ends where a server would have to be asked.
A run on the servers would teach the same, and takes about twice as long (docs/soundness.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from lost_update_lab.memo.events import Ended, do
from lost_update_lab.memo.recording import Recorder, Recording
from lost_update_lab.model.bounds import Bounds
from lost_update_lab.model.errors import NotTheSame, Unknown
from lost_update_lab.model.memoised_server import MemoisedServer
from lost_update_lab.model.server import Server
from lost_update_lab.model.transitions import STEPS, Transition
from lost_update_lab.model.workers import Standing, State, Task, WorkerProcess
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule.world import Chooser, World

#: what is taken next; None: that is chosen
Prescribes = Callable[[World], Transition | None]


def chosen(world: World) -> None:
    """Nothing is prescribed."""


class FedRun(Run):
    """`real`: the servers as the gates know them. `path`: what is taken next, where that is prescribed."""

    fed: ClassVar[bool] = True
    recording: Recording

    def __init__(
        self,
        workers: Sequence[WorkerProcess],
        known: Mapping[str, MemoisedServer],
        real: Mapping[str, Server],
        bounds: Bounds,
        choose: Chooser,
        path: Prescribes,
    ) -> None:
        super().__init__(workers, dict(known), bounds, choose)
        self._real, self._path = real, path

    def prescribed(self) -> Transition | None:
        taken = self._path(self)
        if taken and taken.kind in STEPS and self.task(taken.who).state is not State.READY:
            raise NotTheSame("a worker that is fed comes to another place")
        return taken

    @property
    def at_gates(self) -> Mapping[str, Server]:
        return self._real


class FedRecorder(Recorder):
    """Notes only what is new. What contradicts the recording, or cannot be recorded, is left to a run on the
    servers."""

    def opaque(self, why: str) -> None:
        self.world.error = self.world.error or Unknown()

    def _may_change(self, task: Task) -> bool:
        self.opaque("it does something else than before")
        return False


def remembered(run: FedRun, task: Task) -> Standing:
    """What a thread does that is not fed, as it was recorded. Raises Unknown."""
    while True:
        segment = run.recording.next(run, task)
        for effect in segment.effects:
            if begun := do(run, task, *effect):
                begun.steps = remembered(run, begun)
        event, task.heard = segment.event, None
        if isinstance(event, Ended):
            yield from event.play(run, task, run.recording)
            return
        event.stand(run, task)
        if task.state is not State.RUN:
            yield
        event.turn(run, task, run.recording)
        while task.state is not State.RUN:
            yield
            event.turn(run, task, run.recording)
