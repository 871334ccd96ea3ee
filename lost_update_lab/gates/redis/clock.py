"""redis-py measures how long each command takes, for its metrics. That is no look at the clock: nothing depends on it.

If it counted as one, two moments would differ by how long ago each worker sent its last command (state.py), whichever
worker waited in between. Every other look counts, even one in redis-py's own Lock.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from lost_update_lab.adapters.redis_py import MEASURES, MEASURING
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.bounds import MONOTONIC
from lost_update_lab.runs.place import here


class _Time:
    """The module `time`, as those two modules see it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def monotonic() -> float:
        place = here()
        if place and sys._getframe(1).f_code.co_qualname in MEASURES:
            return MONOTONIC + place.run.now / 1e6
        return time.monotonic()


def install(patches: Patches) -> None:
    for module in MEASURING:
        patches.method(module, "time", _Time())
