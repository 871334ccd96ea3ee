"""Do several coroutines of one worker go on at a time? Only one order of these is tried."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from lost_update_lab.runs.place import here


class AtATime:
    """`seen`: the workers in which a coroutine was ready to go on while another one waited for a reply."""

    seen: ClassVar[set[str]] = set()

    @classmethod
    def look(cls) -> None:
        """A coroutine stands at a gate."""
        if place := here():
            current = asyncio.current_task()
            tasks = asyncio.all_tasks() - {current} if current else ()
            if any(getattr(task, "_fut_waiter", current) is None for task in tasks):
                cls.seen.add(place.task.worker.name)
