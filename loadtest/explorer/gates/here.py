"""Which thread of which worker is this? Everything else in the process passes every gate untouched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadtest.explorer.tasks import Task

if TYPE_CHECKING:
    from loadtest.explorer.run import Run


@dataclass(slots=True)
class Here:
    run: Run
    task: Task
    #: inside something that must not be gated: a connection's handshake, a thread's start
    inside: int = 0


class _Local(threading.local):
    here: Here | None = None


_local = _Local()


def attach(here: Here | None) -> None:
    """This thread now belongs to a worker (None: no longer)."""
    _local.here = here


def here() -> Here | None:
    """Return this thread's place in the running schedule; None: it has none, do the plain thing."""
    found = _local.here
    return None if found is None or found.inside else found


@contextmanager
def beside() -> Iterator[None]:
    """What happens in here is the explorer's own business with a server, or a handshake: no step."""
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
    """The same, also inside of what is not gated."""
    return _local.here
