"""State of the user's modules that survives a schedule, although a worker stands for a process that has just begun.

Inspected: what the modules' globals hold, what those hold in turn (attributes, items), attributes of their classes and
functions, closures and defaults. Left out: clients and their pools, which the gates know.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from functools import lru_cache
from types import ModuleType

from lost_update_lab.runs.look import Look
from lost_update_lab.telling.lines import is_own


def state(root: str = "", first: Collection[str] = ()) -> Look:
    """`module.name` → a text of what it holds now, in this thread. `root`: only modules below this name. `first`: the
    names of modules that are looked at before the others, as there is an end to it (look.MOST)."""
    look = Look()
    for module in sorted(own_modules(root), key=lambda each: each.__name__ not in first):
        look.at_module(module)
    return look


class _Own:
    """The user's modules below `root`, by name. They are looked for again after an import."""

    def __init__(self, root: str) -> None:
        self._root, self._loaded = root, list[ModuleType]()
        self._own: list[ModuleType] = []

    def now(self) -> list[ModuleType]:
        loaded = list(sys.modules.values())
        if loaded != self._loaded:
            self._loaded, self._own = loaded, [*self._found()]
        return self._own

    def _found(self) -> Iterator[ModuleType]:
        for name, module in sorted(sys.modules.items()):
            file = getattr(module, "__file__", None)
            below = not self._root or name == self._root or name.startswith(f"{self._root}.")
            if below and isinstance(file, str) and is_own(file):
                yield module


_own = lru_cache(_Own)


def own_modules(root: str) -> list[ModuleType]:
    """Kept between two looks: to go through the thousands of loaded modules took 40 % of a search's CPU time."""
    return _own(root).now()
