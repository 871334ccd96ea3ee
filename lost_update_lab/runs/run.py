"""One schedule, executed: real threads, of which exactly one runs at a time.

The thread whose turn it is runs its Python code up to its next gate (a command, a sleep, a wait). There it asks what
may happen next, has one option chosen, and either goes on itself or hands the turn to another thread and stands still.
There is no thread of a scheduler: a worker that goes on costs no switch.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Any, TypeVar

from lost_update_lab.memo.events import Begins, Ended, Waiting
from lost_update_lab.memo.recording import Event, Recorder, Recording
from lost_update_lab.model.bounds import SECOND, Bounds
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.server import Server
from lost_update_lab.model.workers import Halt, Standing, Task, Worker
from lost_update_lab.schedule import pending, transition
from lost_update_lab.schedule.world import Chooser, World

E = TypeVar("E", bound=Event)
#: seconds without any news, in which every step would be done many times over
NEWS_WITHIN = 20


class Run(World):
    """The state of one schedule while it is executed."""

    recording: Recording | None
    recorder: Recorder | None

    def __init__(
        self, workers: Sequence[Worker], servers: dict[str, Server], bounds: Bounds, choose: Chooser
    ) -> None:
        super().__init__(workers, servers, bounds, choose)
        self._over = threading.Lock()
        self._over.acquire()
        self._news = 0  # grows with every decision: the watchdog's sign of life

    # -- the scheduler --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Hand the turn to the first worker. Returns when the run is over, its threads still standing."""
        self._pass_on(None)
        seen = -1
        while not self._over.acquire(timeout=NEWS_WITHIN):
            if self._news == seen:
                raise Broken(self._whereabouts())
            seen = self._news

    def play(self) -> None:
        """The same without any thread, for workers whose doings are known. Raises Unknown where they are not."""
        while task := transition.next_task(self):
            self._played(task)

    def live(self, task: Task, steps: Standing) -> Any:
        """Do these steps as a thread: it stands still where they stop. Raises Halt when the task's life is over."""
        try:
            next(steps)
            while True:
                try:
                    self._stand(task)
                except Halt as halt:
                    steps.throw(halt)
                next(steps)
        except StopIteration as done:
            return done.value

    def _stand(self, task: Task) -> None:
        if not self._pass_on(task):
            task.go.acquire()
        if self.ending or not task.alive:
            raise Halt

    def _pass_on(self, me: Task | None) -> bool:
        """Choose who runs next. → is it `me`?"""
        self._news += 1
        try:
            while (
                chosen := transition.next_task(self)
            ) and chosen.steps:  # of a worker whose doings are known
                self._played(chosen)
        except BaseException as error:  # noqa: BLE001  (shown by the thread that waits for the run)
            self.error, chosen = error, None
        if chosen is None:
            self._over.release()
        elif chosen is me:
            return True
        else:
            chosen.go.release()
        return False

    def _played(self, task: Task) -> None:
        """Its turn, where its doings are known."""
        assert task.steps is not None
        try:
            next(task.steps)
        except StopIteration:
            pending.end(self, task)

    def _whereabouts(self) -> str:
        """Where each thread stands, when nothing was heard for too long."""
        frames = sys._current_frames()
        lines = []
        for task in self.tasks:
            frame = frames.get(task.thread.ident or 0) if task.thread else None
            where = traceback.extract_stack(frame)[-1] if frame else None
            place = f"{where.filename}:{where.lineno} {where.name}" if where else "?"
            lines.append(f"{task.name} {task.state.value} at {place}")
        return (
            "a worker waits in something that the explorer does not see (no gate): "
            + "; ".join(lines)
            + f". Virtual time {self.now / SECOND:g} s. Gate that client (docs/explorer.md)"
        )

    # -- what the gates call --------------------------------------------------------------------------------------

    def arrives(self, task: Task, event: E) -> E:
        """A thread stands before this. → the same as it was recorded first"""
        return self.recorder.arrives(task, event) if self.recorder else event

    def wait(self, task: Task, key: object, seconds: float | None, text: str) -> bool:
        """A thread waits for `key`, or for the time. → did `key` come?"""
        if self.recorder and not self.ending:
            self.recorder.arrives(task, Waiting(self.recorder.key(task, key), seconds, text))
        return bool(self.live(task, pending.waiting(self, task, key, seconds, text)))

    def begin_to_look(self, task: Task) -> None:
        """A thread is about to look at a clock. Before its first command, when that is is a decision of its own."""
        if task.due is None and not self.ending:
            self.live(task, self.arrives(task, Begins()).play(self, task))

    def finished(self, task: Task) -> None:
        """The thread's code is at its end: hand the turn on."""
        if self.recorder and not self.ending:
            answer = (task.worker.result, task.worker.error) if task.main else ()
            self.recorder.arrives(task, Ended(*answer))
        pending.end(self, task)
        if not self.ending:
            self._pass_on(task)
