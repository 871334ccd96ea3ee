"""A schedule that is computed from known steps: no worker's code runs, and no server is asked.

What a worker does next follows from what it was told (recording.py). What a server answers, and what it holds then,
follows from what it holds and what it is asked. Once it has answered a question, the answer is known
(memoised_server.py). So where both are known, a schedule need not be executed to be covered. It need not start from the
beginning either: at each decision a copy of the run is kept, and the next schedule goes on from there. At the first
unknown answer, the schedule is executed from its beginning on the servers, and their answers are known from then on.

Every different step was executed, but not every order of the steps. That relies on what a state relies on (state.py):
nothing else matters. Now and then an in-memory run is executed all the same, and must come to the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lost_update_lab.memo.events import do
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.bounds import Bounds
from lost_update_lab.model.memoised_server import MemoisedServer
from lost_update_lab.model.transitions import Transition
from lost_update_lab.model.workers import State, Task, WorkerProcess
from lost_update_lab.schedule import decisions
from lost_update_lab.schedule.world import Chooser, World

T = TypeVar("T")


class InMemoryRun(World):
    """The state of one schedule, without threads and without servers."""

    def __init__(
        self,
        workers: Sequence[WorkerProcess],
        known: dict[str, MemoisedServer],
        bounds: Bounds,
        recording: Recording,
        choose: Chooser,
    ) -> None:
        super().__init__(workers, dict(known), bounds, choose)
        self.recording: Recording = recording

    def go_on(self, transition: Transition | None = None) -> None:
        """Take this transition where the run stands (None: the run begins), and go on to the end. Raises Unknown."""
        if transition and (task := decisions.apply(self, transition)):
            self._advance(task)
        while task := decisions.next_task(self):
            self._advance(task)

    def _advance(self, task: Task) -> None:
        """It is this thread's turn: advance it to its next gate at which it stands still."""
        while True:
            if task.event is not None:
                task.event.turn(self, task, self.recording)
                if task.state is not State.RUN:  # it waits, or stands in the middle of it
                    return
            segment = self.recording.next(self, task)
            for effect in segment.effects:
                do(self, task, *effect)
            task.event, task.heard = segment.event, None
            task.event.stand(self, task)
            if task.state is not State.RUN:
                return

    def __del__(self) -> None:
        """Workers and tasks refer to each other, and nobody goes on with them: no collection need find them."""
        for task in self.tasks:
            vars(task).clear()

    def copy(self) -> InMemoryRun:
        """A copy of the run, from which another schedule can go on."""
        twin = InMemoryRun.__new__(InMemoryRun)
        vars(twin).update(vars(self))
        tasks: dict[object, Task] = {}
        twin.workers = [_worker(worker, tasks) for worker in self.workers]
        for task in tasks.values():
            if isinstance(task.key, Task):
                task.key = tasks[task.key]
        twin.know_tasks()
        twin.last = tasks[self.last] if self.last else None
        twin.servers = {name: server.copy() for name, server in self.servers.items()}  # type: ignore[attr-defined]
        for name in ("waiting_line", "deadlock"):
            setattr(twin, name, [tasks[task] for task in getattr(self, name)])
        for name in ("spent", "charged", "touched", "steps", "applicable", "learned"):
            setattr(twin, name, getattr(self, name).copy())
        return twin


def _worker(worker: WorkerProcess, tasks: dict[object, Task]) -> WorkerProcess:
    twin = _shallow(worker)
    twin.trying, twin.chance = _shallow(worker.trying), worker.chance.copy()
    twin.tasks = [_task(task, twin, tasks) for task in worker.tasks]
    twin.sessions = {
        name: {session: tasks[task] for session, task in used.items()}
        for name, used in worker.sessions.items()
    }
    return twin


def _task(task: Task, worker: WorkerProcess, tasks: dict[object, Task]) -> Task:
    twin = tasks[task] = _shallow(task)
    twin.worker, twin.history = worker, task.history.copy()
    return twin


def _shallow(thing: T) -> T:
    twin = object.__new__(type(thing))
    vars(twin).update(vars(thing))
    return twin
