"""Celery notes in a variable of its module whether a task may wait for another one. Each worker has its own.

Tasks that are called at once (`task_always_eager`, `.apply()`) set it while they run. Two workers of one process would
set it for each other, and one that a fault ends would leave it set for the rest of the user's program.
"""

from __future__ import annotations

import sys
import threading

from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import here


def install(patches: Patches) -> None:
    state = sys.modules.get("celery._state")
    if state is None:
        return
    own, asks, sets = threading.local(), state.task_join_will_block, state._set_task_join_will_block

    def will_block() -> bool:
        if place := here():
            run, blocks = getattr(own, "noted", (None, False))
            return bool(blocks and run is place.run)  # each run begins as a new process does
        return bool(asks())

    def set_will_block(blocks: bool) -> None:
        if place := here():
            own.noted = place.run, blocks
        else:
            sets(blocks)

    patches.everywhere(asks, will_block)
    patches.everywhere(sets, set_will_block)
