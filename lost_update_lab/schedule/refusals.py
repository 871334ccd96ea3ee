"""A try that did not wait for a lock of another worker's transaction: NOWAIT, SKIP LOCKED. Who polls so hears its end.

A: BEGIN; SELECT … FOR UPDATE
B: SELECT … FOR UPDATE NOWAIT      refused, so it sleeps, and will try again
A: COMMIT                          no row is another one now, and yet B's next try is another one
"""

from __future__ import annotations

from lost_update_lab.model.workers import Task, WorkerProcess
from lost_update_lab.schedule.world import World


def note(world: World, task: Task) -> None:
    """A lock has refused what the task has tried: one of those that others hold now."""
    task.refused_by = tuple(
        (name, worker.index)
        for name in world.servers
        for worker in world.workers
        if worker is not task.worker and _keeps(world, name, worker)
    )


def are_over(world: World, task: Task) -> bool:
    """Has one of those let go of it? Not if that worker polls in vain itself: two that refuse each other in turn, and
    give up what they have, would be news to each other for ever."""
    return any(
        not _keeps(world, name, worker) and not (worker.main.alive and worker.main.vain_since is not None)
        for name, index in task.refused_by
        for worker in (world.workers[index],)
    )


def _keeps(world: World, server: str, worker: WorkerProcess) -> bool:
    return world.servers[server].keeps_rows(list(worker.sessions.get(server, ())))
