"""The threads that play the workers' main threads: kept, because a client belongs to the thread that made it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar

from lost_update_lab.model.workers import Task

_now = time.perf_counter  # the real one: workers see another
#: seconds that the code of a worker may take to its end, and between two looks whether it comes to one at all
END_WITHIN, LOOK_EVERY = 20.0, 0.05


class WorkerThread:
    """The kept thread of one worker: it plays the worker's main thread in run after run. `left`: so many of this
    process never came to the end of a job, and are left where they are."""

    left: ClassVar[int] = 0

    def __init__(self, name: str) -> None:
        self.job: Callable[[], None] | None = None
        self.begin, self.done = threading.Lock(), threading.Lock()
        self.begin.acquire()
        self.done.acquire()
        self.thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        while True:
            self.begin.acquire()
            if self.job is None:
                return
            self.job()
            self.done.release()

    def prepare(self, job: Callable[[], None]) -> None:
        """It will do this as soon as `begin` is released: until then its thread sleeps on."""
        self.job = job

    def give(self, job: Callable[[], None] | None) -> None:
        self.job = job
        self.begin.release()

    def finish(self, within: float = END_WITHIN, task: Task | None = None) -> bool:
        """Wait until it has done its job. → has it? Not one that swallows its end, or that hangs."""
        until = _now() + within
        while not self.done.acquire(timeout=LOOK_EVERY):
            if (task and task.swallows) or _now() > until:
                return False
        return True
