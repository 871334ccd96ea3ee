"""A condition, an event or a queue that two workers use. Workers stand for processes: it would be two, one in each.

    Ann   SET lock … NX → OK    EVENTS[lock] = threading.Event()
    Bob   SET lock … NX → nil   EVENTS[lock].wait()                 in his own process there is no such event

A lock of this kind keeps no other process out, so it is refused where a worker waits for what another one has made, or
is woken by another one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.workers import Task, halt
from lost_update_lab.runs.hang import shared
from lost_update_lab.runs.place import Here, here

#: what binds asyncio's locks, events and queues to a loop
_LoopBound: Any = asyncio.mixins._LoopBoundMixin
_made, _get_loop, _set = threading.Condition.__init__, _LoopBound._get_loop, asyncio.Event.set
#: the worker that was the first to use it in this search, by its number
_users: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def uses(thing: object) -> None:
    """The worker that runs now, if one does, uses it."""
    if place := here():
        _users.setdefault(thing, place.task.worker.index)


def waits_for(place: Here, thing: object) -> None:
    """Raises Halt if another worker was the first to use it."""
    if _users.setdefault(thing, place.task.worker.index) != place.task.worker.index:
        place.run.error = place.run.error or shared(place.task)
        halt(place.task)


def tells(place: Here, condition: threading.Condition, woken: Sequence[Task]) -> None:
    """The worker tells others by it, and has woken these threads."""
    uses(condition)
    others = (task for task in woken if task.worker is not place.task.worker)
    if (other := next(others, None)) and not place.run.ending:
        place.run.error = place.run.error or shared(other)


def make(condition: threading.Condition, lock: Any = None) -> None:
    _made(condition, lock)
    uses(condition)


def get_loop(bound: Any) -> Any:
    """What a coroutine waits for belongs to its loop from then on."""
    if place := here():
        waits_for(place, bound)
    return _get_loop(bound)


def set_event(event: asyncio.Event) -> None:
    if event._waiters and (place := here()):
        waits_for(place, event)
    _set(event)


def install(patches: Patches) -> None:
    _users.clear()
    patches.method(threading.Condition, "__init__", make)
    patches.method(_LoopBound, "_get_loop", get_loop)
    patches.method(asyncio.Event, "set", set_event)
