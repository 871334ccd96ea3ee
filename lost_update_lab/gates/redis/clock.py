"""redis-py measures how long each command takes, for its metrics. That is no look at the clock: nothing depends on it.

If it counted as one, two moments would differ by how long ago each worker sent its last command (state.py), whoever
waited in between. Every other look, also one in redis-py's own Lock, counts.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import redis.client
import redis.connection

from lost_update_lab.gates import clocks
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import here

#: functions of redis.client and redis.connection that hand what the clock shows to their metrics, and to nothing else
MEASURES = frozenset(
    {
        "Redis._execute_command",
        "Redis._close_connection",
        "PubSub._execute",
        "PubSub._reconnect",
        "Pipeline.execute",
        "Pipeline.immediate_execute_command",
        "Pipeline._disconnect_raise_on_watching",
        "Pipeline._disconnect_reset_raise_on_watching",
        "ConnectionPool.get_connection",
        "BlockingConnectionPool.get_connection",
    }
)


class _Time:
    """The module `time`, as those two see it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def monotonic() -> float:
        place = here()
        if place and sys._getframe(1).f_code.co_qualname in MEASURES:
            return clocks.MONOTONIC + place.run.now / 1e6
        return time.monotonic()


def install(patches: Patches) -> None:
    for module in (redis.client, redis.connection):
        patches.method(module, "time", _Time())
