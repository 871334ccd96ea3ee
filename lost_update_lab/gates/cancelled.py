"""A coroutine is cancelled while its command is under way: was the command executed, or not?

- psycopg asks the server to cancel the command, and waits for what becomes of it. The server learns of it before the
  command ends, which then has done nothing, or too late. Both are tried. What the coroutine hears is CancelledError.
  Cancelled again meanwhile, psycopg closes the connection (postgres/unheard.py).
- redis-py cuts the connection. What was sent takes effect at some time, and nobody hears a reply (redis/coroutines.py).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Protocol

from lost_update_lab.gates.stand import Stand
from lost_update_lab.model.commands import HEARS
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import Task, halt
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending
from lost_update_lab.telling.narrative import shortened

AGAIN = (
    "a coroutine of {who} is cancelled again while psycopg cancels its command ({command}), and what the server does "
    "then is open"
)
LET_IT_END = "let that command come to its end: wait for the task, or cancel it only between its commands"


class Loop(Protocol):
    """What is asked of the event loop (event_loop.py)."""

    stands: dict[Task, Stand]

    def create_future(self) -> asyncio.Future[Any]: ...

    def happens(self, task: Task) -> None: ...


async def cancelled(loop: Loop, run: Run, task: Task, stand: Stand) -> None:
    """The coroutine of this task is cancelled. Returns when it learns so."""
    heard, stand.cancelled = loop.stands.pop(task, None) is None, True
    if run.ending or not task.alive:
        _ends(task, stand)
    if task.op and not heard and (stand.leaves or task.op.server):
        what = "does not hear the reply" if stand.answer else f"this is under way: {task.op.text}"
        run.record(task.worker.name, task.name, "cancel", f"is cancelled, and {what}", "")
    if run.recorder:
        run.recorder.opaque("a coroutine that is cancelled")
    task.history.add(b"cancelled")
    loop.happens(task)
    if stand.leaves:
        await _until_it_is_known(loop, run, task, stand)
        return
    _goes_on(run, task, stand)


def _goes_on(run: Run, task: Task, stand: Stand) -> None:
    stand.steps.close()
    if task in run.waiting_line:
        run.waiting_line.remove(task)
    task.goes_on()
    task.canceling = task.canceled = False


async def _until_it_is_known(loop: Loop, run: Run, task: Task, stand: Stand) -> None:
    loop.stands[task], stand.turn, stand.decided = stand, loop.create_future(), False
    if stand.answer:
        pending.stand(run, task, HEARS)
    else:
        pending.give_up(run, task)
    try:
        with suppress(Exception):
            await stand.turn
    except asyncio.CancelledError:
        loop.stands.pop(task, None)
        if run.ending or not task.alive:
            _ends(task, stand)
        assert stand.leaves
        if not stand.leaves():
            run.error = again(task)
            _ends(task, stand)
        task.history.add(b"cancelled again")
        loop.happens(task)
        _goes_on(run, task, stand)


def _ends(task: Task, stand: Stand) -> None:
    stand.end()
    halt(task)


def again(task: Task) -> Broken:
    """The error to raise for a command whose coroutine does not wait for what becomes of it."""
    command = task.op.text if task.op else ""
    return Broken(AGAIN.format(who=task.worker.name, command=shortened(command, 60)), LET_IT_END)
