"""What a worker's modules hold. A worker that were a process of its own could not see another worker change it.

Workers stand for processes that have just begun, but their code runs in one process. So the modules are inspected
before a worker begins (has an earlier schedule left something?), and each time before and after it stands still (has
another worker changed something meanwhile?). What is made once, while clients warm up, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lost_update_lab.model.errors import KEEPS_STATE, Elsewhere

#: names, and a text of what each of them holds, as this thread sees them
Held = Mapping[str, str]
#: after this many runs a worker makes nothing for the first time any more; how many names a message shows
WARM, SHOWN = 3, 3
SHARED = "Workers stand for processes that have just begun, and share no memory"


class Memory:
    """`look`: returns what the modules hold now (runs/modules.py)."""

    def __init__(self, look: Callable[[], Held]) -> None:
        self.look = look
        self._begun: dict[int, int] = {}
        self._warm: dict[int, Held] = {}

    def begins(self, index: int) -> Elsewhere | None:
        """Worker number `index` is about to begin. Returns the error to raise if something has survived."""
        self._begun[index] = self._begun.get(index, 0) + 1
        if self._begun[index] < WARM:
            return None
        held = self.look()
        return _told("survives a schedule", self._warm.setdefault(index, held), held)

    def before(self, index: int) -> Held | None:
        """The worker is about to stand still. Returns what to pass to `after`."""
        return self.look() if self._begun.get(index, 0) > WARM else None

    def after(self, before: Held | None) -> Elsewhere | None:
        """The worker goes on. Returns the error to raise if another one has changed something."""
        return (
            None
            if before is None
            else _told("workers share, and that survives a schedule", before, self.look())
        )


def changed(before: Held, after: Held) -> list[str]:
    """The names that no longer hold what they held. A list that has grown stands for its contents."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [name for name in names if not any(name.startswith((f"{each}.", f"{each}[")) for each in names)]


def _told(how: str, before: Held, after: Held) -> Elsewhere | None:
    if not (names := changed(before, after)):
        return None
    told = ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)
    return Elsewhere(f"it keeps state that {how}: {told}. {SHARED}", KEEPS_STATE)
