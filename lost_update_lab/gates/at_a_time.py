"""Do several coroutines of one worker go on at a time? Only one order of these is tried."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from lost_update_lab.runs.place import here


class AtATime:
    """`seen`: the workers in which a coroutine was ready to go on, or a time-out to come, while another one waited for
    a reply."""

    seen: ClassVar[set[str]] = set()

    @classmethod
    def look(cls) -> None:
        """A coroutine stands at a gate."""
        if place := here():
            current = asyncio.current_task()
            tasks = asyncio.all_tasks() - {current} if current else ()
            timers = getattr(asyncio.get_running_loop(), "_scheduled", ())
            others = any(getattr(task, "_fut_waiter", current) is None for task in tasks)
            if others or not all(timer.cancelled() for timer in timers):
                cls.seen.add(place.task.worker.name)
