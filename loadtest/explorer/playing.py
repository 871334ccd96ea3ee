"""Playing a recording: what a worker's threads would do, done in their place, without a thread."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loadtest.explorer.ops import Op
from loadtest.explorer.tasks import Task

if TYPE_CHECKING:
    from loadtest.explorer.recording import Recording
    from loadtest.explorer.run import Run

#: stops wherever a thread would stand still, and goes on when it has the baton
Standing = Generator[None, None, Any]
#: what a thread may do besides: look at its monotonic clock, at its wall clock, put a time on something, …
LOOK, WALL, STAMP, START, NOTIFY = "look", "wall", "stamp", "start", "notify"
CLOCKS = frozenset({LOOK, WALL, STAMP})


class Unknown(Exception):
    """No worker was told this before, at this point: only its real code knows what it does."""


class Event(Protocol):
    """What a thread stands before."""

    def same(self) -> Hashable:
        """Two events are the same if these are."""

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        """Do it in the thread's place, and tell the task what the thread would be told (Run.heard)."""


@dataclass(slots=True)
class Waiting:
    """`key`: what for, by its name in the recording."""

    key: tuple[str, int]
    seconds: float | None
    text: str

    def same(self) -> Hashable:
        return self.key, self.seconds, self.text

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        return run.waiting(task, run.key(task.worker, self.key), self.seconds, self.text)


@dataclass(slots=True)
class Begins:
    """The worker has sent nothing yet, and is about to look at a clock. It may come as late as it likes; then it has
    begun."""

    def same(self) -> Hashable:
        return "begins"

    def play(self, run: Run, task: Task, recording: Recording | None = None) -> Standing:
        yield from run.standing(task, Op("", "begins", b"begins", reads=True))
        run.heard(task, "begun")


@dataclass(slots=True)
class Ended:
    """The thread is at its end; a main thread has an answer."""

    result: Any = None
    error: BaseException | None = None

    def same(self) -> Hashable:
        return type(self.result), type(self.error), str(self.error)

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        if task.main:
            task.worker.result, task.worker.error = self.result, self.error
        return
        yield


def player(run: Run, task: Task, recording: Recording) -> Standing:
    """What `task` does, from its begin to its end. Raises Unknown."""
    event: Event | None = None
    while not isinstance(event, Ended):
        segment = recording.next(run, task)
        for effect in segment.effects:
            _do(run, task, recording, *effect)
        event, task.heard = segment.event, None
        yield from event.play(run, task, recording)


def _do(run: Run, task: Task, recording: Recording, kind: str, *details: Any) -> None:
    if kind in (LOOK, WALL):
        run.wall_clock_read |= kind == WALL
        task.history.look(run.now)
    elif kind == START:
        begun = run.new_thread(task.worker)
        begun.steps = player(run, begun, recording)
    elif kind == NOTIFY:
        key, count = details
        run.notify(run.key(task.worker, key), count)
