"""Playing a recording: what a worker's threads would do, done in their place, without a thread."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule import retries

if TYPE_CHECKING:
    from lost_update_lab.memo.recording import Recording
    from lost_update_lab.runs.in_memory_run import Composed
    from lost_update_lab.runs.run import Run

#: stops wherever a thread would stand still, and goes on when it has the baton
Standing = Generator[None, None, Any]
#: what a thread may do besides: look at its monotonic clock, at its wall clock, put a time on something, draw a
#: random number (and which: retries.py), …
LOOK, WALL, STAMP, DRAW, START, NOTIFY = "look", "wall", "stamp", "draw", "start", "notify"
CLOCKS = frozenset({LOOK, WALL, STAMP})
#: who waits for this sleeps: nobody else will wake it
NOBODY = object()


class Unknown(Exception):
    """This worker (its number) was never told this before, at this point: only its real code knows what it does."""

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self.worker = worker


class Unanswered(Unknown):
    """No server was asked this before, as it stands: only the real one knows (model/server_memory.py)."""


class Event(Protocol):
    """What a thread stands before."""

    def same(self) -> Hashable:
        """Two events are the same if these are."""

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        """Do it in the thread's place, and tell the task what the thread would be told (Run.heard)."""

    def stand(self, run: Composed, task: Task) -> None:
        """The same where no server is asked: the thread stands before it …"""

    def turn(self, run: Composed, task: Task) -> None:
        """… and now does it. Raises Unknown."""


@dataclass(slots=True)
class Waiting:
    """`key`: what for, by its name in the recording."""

    key: tuple[str, int, int]
    seconds: float | None
    text: str

    def same(self) -> Hashable:
        seconds = (
            None if self.seconds is None else round(self.seconds, 6)
        )  # times are in µs, and seconds are floats
        return self.key, seconds, self.text

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        return run.waiting(task, run.key(task.worker, self.key), self.seconds, self.text)

    def stand(self, run: Composed, task: Task) -> None:
        run.stand_still(task, run.key(task.worker, self.key), self.seconds, self.text)

    def turn(self, run: Composed, task: Task) -> None:
        run.waited(task)


@dataclass(slots=True)
class Begins:
    """The worker has sent nothing yet, and is about to look at a clock. It may come as late as it likes; then it has
    begun."""

    def same(self) -> Hashable:
        return "begins"

    def play(self, run: Run, task: Task, recording: Recording | None = None) -> Standing:
        self._stand(run, task)
        yield
        run.heard(task, "begun")

    def _stand(self, run: Run, task: Task) -> None:
        run.stand(task, Op("", "begins", b"begins", reads=True))

    def stand(self, run: Composed, task: Task) -> None:
        self._stand(run, task)

    def turn(self, run: Composed, task: Task) -> None:
        run.heard(task, "begun")


@dataclass(slots=True)
class Ended:
    """The thread is at its end; a main thread has an answer."""

    result: Any = None
    error: BaseException | None = None

    def same(self) -> Hashable:
        return type(self.result), type(self.error), str(self.error)

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        self._answer(task)
        return
        yield

    def _answer(self, task: Task) -> None:
        if task.main:
            task.worker.result, task.worker.error = self.result, self.error

    def stand(self, run: Composed, task: Task) -> None:
        self._answer(task)
        run.ended(task)

    def turn(self, run: Composed, task: Task) -> None:
        raise AssertionError("it has ended")


def player(run: Run, task: Task, recording: Recording) -> Standing:
    """What `task` does, from its begin to its end. Raises Unknown."""
    event: Event | None = None
    while not isinstance(event, Ended):
        segment = recording.next(run, task)
        for effect in segment.effects:
            if begun := do(run, task, *effect):
                begun.steps = player(run, begun, recording)
        event, task.heard = segment.event, None
        yield from event.play(run, task, recording)


def do(run: Run, task: Task, kind: str, *details: Any) -> Task | None:
    """What a thread does besides. → the thread that it starts, if it does"""
    if kind in (LOOK, WALL):
        run.wall_clock_read |= kind == WALL
        task.history.look(run.now)
    elif kind == DRAW:
        retries.draw(task, *details)
    elif kind == START:
        return run.new_thread(task.worker)
    elif kind == NOTIFY:
        key, count = details
        run.notify(run.key(task.worker, key), count)
    return None
