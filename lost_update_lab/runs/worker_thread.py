"""The threads that run the workers' main threads. Kept, because a client belongs to the thread that made it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar

from lost_update_lab.model.workers import Task

_now = time.perf_counter  # the real one: workers see another
#: seconds that a worker's code may take to its end; and seconds between two looks at whether it will end at all
END_WITHIN, LOOK_EVERY = 20.0, 0.05
#: the name of the thread: workers stand for processes, and each of those has one of this name
MAIN = "MainThread"


class WorkerThread:
    """The kept thread of one worker. It runs the worker's main thread in run after run. `left`: how many threads of
    this process never came to the end of a job, and are left where they are."""

    left: ClassVar[int] = 0

    def __init__(self) -> None:
        self.job: Callable[[], None] | None = None
        self.begin, self.done = threading.Lock(), threading.Lock()
        self.begin.acquire()
        self.done.acquire()
        self.thread = threading.Thread(target=self._loop, name=MAIN, daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        while True:
            self.begin.acquire()
            if self.job is None:
                return
            self.job()
            self.done.release()

    def prepare(self, job: Callable[[], None]) -> None:
        """The thread will do this job as soon as `begin` is released. Until then it sleeps on."""
        self.job = job

    def give(self, job: Callable[[], None] | None) -> None:
        self.job = job
        self.begin.release()

    def finish(self, within: float = END_WITHIN, task: Task | None = None) -> bool:
        """Wait until it has done its job. Returns whether it has; not if it swallows its end, or hangs."""
        until = _now() + within
        while not self.done.acquire(timeout=LOOK_EVERY):
            if (task and task.swallows) or _now() > until:
                return False
        return True
