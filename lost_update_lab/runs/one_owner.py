"""A connection that two workers use. Each of them stands for a process, and no two processes share one."""

from __future__ import annotations

from typing import Any

from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import Task, halt
from lost_update_lab.schedule.world import World

SHARED = (
    "one connection {what} is used by two workers, or by two threads of one: each worker stands for a process, and "
    "processes share no connection"
)
OF_ITS_OWN = (
    "let each operation make its own connection (or session), or take it from a pool: one that the module keeps, or "
    "that both workers are given, is one object for both"
)


def only_owner(world: World, task: Task, server: str, connection: Any) -> None:
    """Ends the run if another worker has used this connection. `server`: its name."""
    others = (worker for worker in world.workers if worker is not task.worker)
    if any(connection in worker.sessions.get(server, ()) for worker in others):
        world.error = Broken(SHARED.format(what=f"to {server}"), OF_ITS_OWN)
        halt(task)
