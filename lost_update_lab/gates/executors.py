"""Pools of threads (concurrent.futures, asyncio.to_thread): their threads are the worker's, and wait in virtual time.

Such a pool hands over its work through a queue that is written in C, and that no gate sees. A worker's pool gets the
same one in Python, whose waits are gated (threads.py). A pool that the process keeps is one object for all workers, so
each of them gets a twin of its own in each schedule.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from weakref import ref

from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import Here, anywhere, here

_queue, _begin, _submit = queue.SimpleQueue, ThreadPoolExecutor.__init__, ThreadPoolExecutor.submit


class _Idle(threading.Semaphore):
    """Is a thread of the pool idle? It is asked under a lock of the process, where nothing may stand still."""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        return super().acquire(blocking=False)


def simple_queue() -> Any:
    python: Any = queue
    return python._PySimpleQueue() if anywhere() else _queue()


def begin(pool: Any, *args: Any, **keywords: Any) -> None:
    _begin(pool, *args, **keywords)
    if place := anywhere():
        pool._idle_semaphore = _Idle(0)
        pool.explorer_made = ref(place.run), place.task.worker.index


def submit(pool: Any, work: Any, /, *args: Any, **keywords: Any) -> Future[Any]:
    place = here()
    return _submit(pool if place is None else _own(place, pool), work, *args, **keywords)


def _own(place: Here, pool: Any) -> Any:
    """The worker's pool: this one, if the worker has made it in this schedule."""
    if _made_now(place, pool):
        return pool
    twins = vars(pool).setdefault("explorer_twins", {})
    index = place.task.worker.index
    if index not in twins or not _made_now(place, twins[index]):
        given = pool._thread_name_prefix, pool._initializer, pool._initargs
        twins[index] = ThreadPoolExecutor(pool._max_workers, *given)
    return twins[index]


def _made_now(place: Here, pool: Any) -> bool:
    run, index = getattr(pool, "explorer_made", (None, 0))
    return run is not None and run() is place.run and index == place.task.worker.index


def install(patches: Patches) -> None:
    patches.method(queue, "SimpleQueue", simple_queue)
    patches.method(ThreadPoolExecutor, "__init__", begin)
    patches.method(ThreadPoolExecutor, "submit", submit)
