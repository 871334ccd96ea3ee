"""Which thread of which worker is this? Every other thread of the process passes every gate untouched."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import EventLoop, Task
from lost_update_lab.runs.run import Run
from lost_update_lab.telling.lines import SourceLine

LOOK_AT_THE_SERVER = "look at the server's log: is it up, and has it room for another connection?"


@dataclass(slots=True)
class Here:
    run: Run
    task: Task
    #: inside something that must not be gated: a connection's handshake, a thread's start
    inside: int = 0
    #: the event loop that runs in this thread, and has gates
    loop: EventLoop | None = None
    #: where the user's code is, if its frames do not show it
    line: SourceLine | None = None


class Active:
    """The run that is being executed. Only the threads of its workers may talk to its servers."""

    run: Run | None = None
    #: those of the harness, also between two runs
    servers: Mapping[str, Any] = {}

    @classmethod
    def bypassed(cls, command: str) -> None:
        """A thread that belongs to no worker has sent this. Outside of a run that does not matter."""
        if cls.run is not None and _local.here is None:
            name = threading.current_thread().name
            cls.run.bypassed = f"the thread {name!r}, which belongs to no worker, sent {command}"


class _Local(threading.local):
    here: Here | None = None


_local = _Local()


def attach(here: Here | None) -> None:
    """This thread now belongs to a worker (None: no longer)."""
    _local.here = here


def is_of_a_worker() -> bool:
    """Does this thread belong to one? Asked without a stop, in a coroutine, too."""
    return _local.here is not None


def here() -> Here | None:
    """Return this thread's place in the running schedule. None: it has no place and does the plain thing."""
    found = anywhere()
    return None if found is None or found.inside else found


@contextmanager
def beside() -> Iterator[None]:
    """What happens in here is not a step: a handshake, or the explorer's own business with a server."""
    place = _local.here
    if place is None:
        yield
        return
    place.inside += 1
    try:
        yield
    finally:
        place.inside -= 1


def anywhere() -> Here | None:
    """The same as `here`, also inside what is not gated."""
    found = _local.here
    if found is not None and found.loop is not None:
        found.task = found.loop.current()
    return found


@contextmanager
def connecting() -> Iterator[None]:
    """A connection that cannot be made is not a fault of the schedule. What its worker does then proves nothing."""
    try:
        yield
    except Exception as error:
        place = anywhere()
        if place and not place.run.ending:
            place.run.error = Broken(f"{place.task.name} cannot connect: {error}", LOOK_AT_THE_SERVER)
        raise
