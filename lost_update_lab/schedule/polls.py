"""Rounds: what a thread does between two waits. A round that is the same as the one before was a poll in vain."""

from __future__ import annotations

from lost_update_lab.model.bounds import SECOND
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule import retries, virtual_clock
from lost_update_lab.schedule.world import World

#: in µs. Commands take no time, so a poll every microsecond would come a million times before anything happens
SHORTEST = 10_000


def until(world: World, task: Task, seconds: float | None) -> None:
    """Its wait ends by itself after this many seconds."""
    micros = None if seconds is None else max(SHORTEST if seconds > 0 else 0, round(seconds * SECOND))
    task.until = None if micros is None else world.now + micros
    world.longest = max(world.longest, micros or 0)
    task.period = micros or 0


def close(world: World, task: Task, seconds: float | None, in_server: bool = False) -> None:
    """It is about to wait this long, so its round is over. Was the round in vain? `in_server`: it waits there."""
    until(world, task, seconds)
    retries.close(task)
    if task.leases is None and world.full:  # not a step: it asked no server
        task.seen = world.polled()
    ends, before, task.leases = world.leases(), task.leases or {}, None
    by_clock = task.timed or _watches(world, task)
    renews = any(ends.get(key, end) > end for key, end in before.items())
    task.timed = False
    counts = virtual_clock.kind_of_poll(task) in world.counting
    beyond = world.full and not (
        counts or virtual_clock.held_back(world, task.worker)
    )  # no other worker is due
    watched = virtual_clock.watched_well(world, task)
    collapse = beyond or watched
    if task.history.tries_again:
        task.history.tries_once_more(world.shared())
    forgets = virtual_clock.known_by_its_turn(world, task)
    same = task.history.close(world.now, collapse, forgets, in_server)
    both = task.history.in_two  # what the other round of the poll did counts, too
    task.by_clock, task.renews = by_clock or (both and task.by_clock), renews or (both and task.renews)
    again = same or task.history.folded
    if world.recording:
        world.recording.rests(task, again and collapse and not watched)
    world.collapsed |= again and collapse
    world.beyond |= again and beyond
    if not same:
        task.is_not_in_vain()
        # renewals without end are no progress for the main thread; nor are timers that are set again and again
        if not (task.beside or task.timer or task.history.tries):
            world.progress_at = world.now
    elif task.vain_since is None and world.full and seconds is not None:  # without a time-out it is no poll
        task.vain_since = world.now


def _watches(world: World, task: Task) -> bool:
    """Does its worker wait with a WATCH? What breaks that need not be news to anybody else."""
    return any(world.servers[name].watches(list(of)) for name, of in task.worker.sessions.items())
