"""What a worker's modules hold. A worker that were a process of its own could not see another worker change it.

Workers stand for processes that have just begun, but their code runs in one process. So a worker finds again what it
left when it stood still, and each schedule begins with what the first ones had begun with: where that is plain values
(plain_state.py), it is put back. The rest is inspected before a worker begins (has an earlier schedule left
something?), and each time before and after it stands still (has another worker changed something meanwhile?). What is
made once, while clients warm up, is left alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lost_update_lab.model.errors import KEEPS_STATE, Elsewhere
from lost_update_lab.runs.plain_state import StatePlaces, put_back
from lost_update_lab.schedule.cached_names import NO_MEMORY

#: names, and a text of what each of them holds, as this thread sees them
Held = Mapping[str, str]
#: after this many runs a worker makes nothing for the first time any more; how many names a message shows
WARM, SHOWN = 3, 3


class Left(NamedTuple):
    """What a worker's thread left when it stood still."""

    held: Held
    places: StatePlaces
    thread: int


class Memory:
    """`look`: returns what the modules hold now (modules.py). `places`: returns where plain values stand. `opening`:
    what they held before anything had run; None: what they hold once clients are warm."""

    def __init__(
        self,
        look: Callable[[], Held],
        places: Callable[[], StatePlaces] = dict,
        opening: StatePlaces | None = None,
    ) -> None:
        self.look, self.places = look, places
        self._begun: dict[int, int] = {}
        self._warm: dict[int, Held] = {}
        #: what a process that has just begun holds; and what each worker has left
        self._opening, self._warm_from = opening, WARM if opening is None else 1
        self._left: dict[int, Left] = {}

    def begins(self, index: int) -> Elsewhere | None:
        """Worker number `index` is about to begin. Returns the error to raise if something has survived."""
        self._begun[index] = self._begun.get(index, 0) + 1
        if self._begun[index] < self._warm_from:
            return None
        if self._opening is None:
            self._opening = self.places()
        put_back(self._opening, self.places())
        held = self.look()
        return _told("survives a schedule", self._warm.setdefault(index, held), held)

    def stands(self, index: int) -> None:
        """A thread of the worker is about to stand still."""
        if self._begun.get(index, 0) >= self._warm_from:
            self._left[index] = Left(self.look(), self.places(), threading.get_ident())

    def goes_on(self, index: int) -> Elsewhere | None:
        """A thread of the worker goes on. Returns the error to raise if another worker has changed something."""
        if self._begun.get(index, 0) < self._warm_from:
            return None
        left = self._left[index]
        put_back(left.places, self.places())
        if self._begun[index] == self._warm_from or left.thread != threading.get_ident():
            return None
        return _told("workers share, and that survives a schedule", left.held, self.look())


def changed(before: Held, after: Held) -> list[str]:
    """The names that no longer hold what they held. A list that has grown stands for its contents."""
    if before == after:
        return []
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [name for name in names if not any(name.startswith((f"{each}.", f"{each}[")) for each in names)]


def _told(how: str, before: Held, after: Held) -> Elsewhere | None:
    if not (names := changed(before, after)):
        return None
    told = ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)
    return Elsewhere(f"it keeps state that {how}: {told}. {NO_MEMORY}", KEEPS_STATE)
