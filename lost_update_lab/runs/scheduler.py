"""Real threads, of which exactly one runs at a time: the one that has the baton."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from lost_update_lab.memo.playing import Standing
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import Halt, State, Task


class Baton(ABC):
    """What a run (run.py) needs where threads do it."""

    def __init__(self) -> None:
        self.ending = False
        self.error: BaseException | None = None
        self._over = threading.Lock()
        self._over.acquire()
        self._news = 0  # grows with every decision: the watchdog's sign of life

    @abstractmethod
    def next_task(self) -> Task | None:
        """Whose turn it is. None: the run is over."""

    @abstractmethod
    def played(self, task: Task) -> None:
        """What this one does is known (playing.py): done without a thread."""

    @abstractmethod
    def whereabouts(self) -> str:
        """Where each thread stands."""

    def begin(self) -> None:
        """Hand the baton to the first worker. Returns when the run is over, its threads still standing."""
        self._pass_on(None)
        seen = -1
        while not self._over.acquire(timeout=20):
            if self._news == seen:
                raise Broken(self.whereabouts())
            seen = self._news

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
        if self.ending or task.state is State.DEAD:
            raise Halt

    def _pass_on(self, me: Task | None) -> bool:
        """Choose who runs next. → is it `me`?"""
        self._news += 1
        try:
            while (chosen := self.next_task()) and chosen.steps:  # of a worker whose doings are known
                self.played(chosen)
        except BaseException as error:  # noqa: BLE001  (shown by the thread that waits for the run)
            self.error, chosen = error, None
        if chosen is None:
            self._over.release()
        elif chosen is me:
            return True
        else:
            chosen.go.release()
        return False
