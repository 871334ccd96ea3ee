"""What a worker's modules hold: no worker of its own process could see another one change it, or find it changed.

Workers stand for processes that have just begun, but their code runs in one process. So one look is taken before a
worker begins (has an earlier schedule left something?), and one each time before and after it stands still (has another
worker changed something meanwhile?). What is made once, while clients are warming up, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lost_update_lab.model.errors import KEEPS_STATE, Elsewhere

#: names, and a text of what each of them holds, as this thread sees it
Held = Mapping[str, str]
#: runs of a worker after which nothing is made for the first time any more; so many names are told
WARM, SHOWN = 3, 3
SHARED = "Workers stand for processes that have just begun, and share no memory"


class Memory:
    """`look`: what is held now (scenarios/modules.py)."""

    def __init__(self, look: Callable[[], Held]) -> None:
        self.look = look
        self._begun: dict[int, int] = {}
        self._warm: dict[int, Held] = {}

    def begins(self, index: int) -> Elsewhere | None:
        """Worker number `index` is about to begin. → the error to tell, if something has survived"""
        self._begun[index] = self._begun.get(index, 0) + 1
        if self._begun[index] < WARM:
            return None
        held = self.look()
        return _told("survives a schedule", self._warm.setdefault(index, held), held)

    def before(self, index: int) -> Held | None:
        """It is about to stand still. → what to give to `after`"""
        return self.look() if self._begun.get(index, 0) > WARM else None

    def after(self, before: Held | None) -> Elsewhere | None:
        """It goes on. → the error to tell, if another one has changed something"""
        return (
            None
            if before is None
            else _told("workers share, and that survives a schedule", before, self.look())
        )


def changed(before: Held, after: Held) -> list[str]:
    """The names that do not hold what they held. A list that has grown stands for what is in it."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [name for name in names if not any(name.startswith((f"{each}.", f"{each}[")) for each in names)]


def _told(how: str, before: Held, after: Held) -> Elsewhere | None:
    if not (names := changed(before, after)):
        return None
    told = ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)
    return Elsewhere(f"it keeps state that {how}: {told}. {SHARED}", KEEPS_STATE)
