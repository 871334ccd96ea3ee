"""Rounds: what a thread does between two waits. One that is the same as the one before was a poll in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lost_update_lab.model.bounds import SECOND
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule import retries, virtual_time

if TYPE_CHECKING:
    from lost_update_lab.runs.run import Run

#: commands take no time, so who polls every microsecond would poll a million times until anything happens: in µs
SHORTEST = 10_000


def until(run: Run, task: Task, seconds: float | None) -> None:
    """Its wait ends by itself after these seconds."""
    micros = None if seconds is None else max(SHORTEST if seconds > 0 else 0, round(seconds * SECOND))
    task.until = None if micros is None else run.now + micros
    run.longest = max(run.longest, micros or 0)
    task.period = micros or 0


def close(run: Run, task: Task, seconds: float | None) -> None:
    """It waits for so long: its round is at its end. Was it in vain?"""
    until(run, task, seconds)
    retries.close(task)
    if task.leases is None and run.full:  # not a step: it asked nobody
        task.seen = virtual_time.shared(run)
    ends, before, task.leases = virtual_time.leases(run), task.leases or {}, None
    task.renews = any(ends.get(key, end) > end for key, end in before.items())
    beyond = run.full and not virtual_time.held_back(
        run, task.worker
    )  # … the slack: nobody else is about to do anything
    watched = virtual_time.watched_well(run, task)
    collapse = beyond or watched
    if task.history.tries_again:
        task.history.attempt(virtual_time.shared(run))
    same = task.history.close(run.now, collapse, virtual_time.known_by_its_turn(run, task))
    again = same or task.history.folded
    if run.recording:
        run.recording.rests(task, again and collapse and not watched)
    run.collapsed |= again and collapse
    run.beyond |= again and beyond
    if not same:
        task.vain_since, task.dozed = None, False
        if task.main and not task.history.attempts:  # a renewal for ever brings nobody on
            run.progress_at = run.now
    elif task.vain_since is None and run.full:
        task.vain_since = run.now
