"""A call of the user's in no schedule, a setup or an invariant, ends in time, or is ended. Where it stands is said.

In the main thread a signal ends it, wherever it waits. A call in another thread can only be left where it is, so it is
made in one that may stay behind.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lost_update_lab.runs.hang import in_a_debugger, stands
from lost_update_lab.runs.worker_thread import WorkerThread

T = TypeVar("T")
_now = time.perf_counter  # the real one: workers see another
#: seconds between two looks; and between two attempts to end a call, which may have to tell its server
LOOK_EVERY, AGAIN = 0.2, 10.0
#: does nothing to a process that knows nothing of it
SIGNAL = signal.SIGURG


class Unending(Exception):
    """The call has not ended in time. The message says where it stands, and what it waits for."""


class _Ends(KeyboardInterrupt):
    """Raised where the call stands. psycopg, as after Ctrl-C, has its server cancel the command."""


@dataclass(eq=False)
class _Call:
    thread: threading.Thread
    until: float
    stood: str = ""
    over: bool = False

    def end(self, *_: object) -> None:
        if self.stood and not self.over:
            raise _Ends


@dataclass
class _Watch:
    """Looks at the calls that are under way, in a thread of its own."""

    calls: list[_Call] = field(default_factory=list)
    news: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def add(self, call: _Call) -> None:
        self.calls.append(call)
        if (
            self.thread is None or not self.thread.is_alive()
        ):  # the first call, or the first in a forked process
            self.thread = threading.Thread(target=self._look, name="lost-update-lab-watch", daemon=True)
            self.thread.start()
        self.news.set()

    def _look(self) -> None:
        while self.news.wait():
            self.news.clear()
            while self.calls:
                time.sleep(LOOK_EVERY)
                for call in list(self.calls):
                    if _now() > call.until and not in_a_debugger(call.thread):
                        call.stood, call.until = call.stood or stands(call.thread), _now() + AGAIN
                        signal.pthread_kill(call.thread.ident or 0, SIGNAL)


_watch = _Watch()


def within(seconds: float, call: Callable[..., T], *arguments: Any) -> T:
    """What it returns. Raises Unending."""
    if threading.current_thread() is not threading.main_thread():
        return _own_aside().within(seconds, call, *arguments)
    with _watched(seconds) as watched:
        try:
            return call(*arguments)
        except _Ends:
            raise Unending(watched.stood) from None


@contextmanager
def _watched(seconds: float) -> Iterator[_Call]:
    watched = _Call(threading.current_thread(), _now() + seconds)
    before = signal.signal(SIGNAL, watched.end)
    _watch.add(watched)
    try:
        yield watched
    finally:
        watched.over = True
        _watch.calls.remove(watched)
        signal.signal(SIGNAL, before)


class Aside:
    """A thread for such calls."""

    def __init__(self) -> None:
        self._thread, self.lost = WorkerThread(), False

    def within(self, seconds: float, call: Callable[..., T], *arguments: Any) -> T:
        """What it returns. Raises Unending, and leaves the thread where it is."""
        told: list[T] = []
        failed: list[BaseException] = []

        def job() -> None:
            try:
                told.append(call(*arguments))
            except BaseException as error:  # noqa: BLE001  (it is raised where it was asked for)
                failed.append(error)

        self._thread.give(job)
        while not self._thread.finish(seconds):
            if not in_a_debugger(self._thread.thread):
                self.lost = True
                raise Unending(stands(self._thread.thread))
        if failed:
            raise failed[0]
        return told[0]

    def close(self) -> None:
        if not self.lost:
            self._thread.give(None)
            self._thread.thread.join()


class _Own(threading.local):
    aside: Aside | None = None


_own = _Own()


def _own_aside() -> Aside:
    """That of this thread: its clients stay in it from call to call."""
    if _own.aside is None or _own.aside.lost:
        _own.aside = Aside()
    return _own.aside
