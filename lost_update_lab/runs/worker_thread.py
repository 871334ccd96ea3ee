"""The threads that play the workers' main threads: kept, because a client belongs to the thread that made it."""

from __future__ import annotations

import threading
from collections.abc import Callable

END_WITHIN = 20.0


class Hand:
    """The kept thread of one worker: it plays the worker's main thread in run after run."""

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

    def finish(self) -> None:
        if not self.done.acquire(timeout=END_WITHIN):
            raise RuntimeError(f"worker {self.thread.name} did not end: its code swallows every exception")
