"""Workers stand for processes that have just begun. What the first run leaves in the user's modules, no process begins
with, and no other worker sees:

    DONE = set()
    A: key in DONE? no: INSERT; DONE.add(key)
    B: key in DONE? no: INSERT too, in a process of its own; in this one it would find A's key, or an earlier schedule's

Plain values are put back (runs/memory.py). A function whose results are cached keeps what a server has answered. That
cannot be put back, so a search that finds nothing is inconclusive then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from types import ModuleType

from lost_update_lab.model.commands import Step
from lost_update_lab.runs.memory import Memory
from lost_update_lab.runs.plain_state import Place, StatePlaces, places
from lost_update_lab.schedule import cached_names
from lost_update_lab.schedule.world import World

CACHED = (
    "{}() is cached, and asks a server: each process asks by itself, and here the first run has asked for all"
)
CLEAR = "let the operation begin with {}.cache_clear(), or do not cache what a server has answered"


class CachedAsking:
    """Looks at each step of a run: which functions under way are cached?"""

    def __init__(self) -> None:
        self.names = set[str]()

    def __call__(self, run: World, step: Step) -> None:
        if step.kind == "step" and (name := cached_names.under_way(sys._getframe(1))):
            self.names.add(name)


def filled(before: StatePlaces, own: Sequence[ModuleType]) -> Memory | None:
    """What the first run has changed of the plain values in the user's modules, as each worker's own. None: nothing.
    `own`: the modules that it can have changed."""
    now = places(own)
    names = {name for name, place in before.items() if name in now and _differs(place, now[name])}
    if not names:
        return None
    modules = [m for m in own if any(name.startswith(f"{m.__name__}.") for name in names)]
    return Memory(dict, partial(_some, names, modules), {name: before[name] for name in names})


def _some(names: set[str], modules: Sequence[ModuleType]) -> StatePlaces:
    return {name: place for name, place in places(modules).items() if name in names}


def _differs(before: Place, now: Place) -> bool:
    return (type(before.value), before.value) != (type(now.value), now.value)
