"""A task of an event loop at its gate, and what is not decided about it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import Halt, Standing, Task
from lost_update_lab.telling.lines import Line

CANCELLED = (
    "a coroutine of {who} is cancelled while its command is under way ({command}), and whether the server executes it "
    "then is open"
)
LET_IT_END = "let that command come to its end: wait for the task, or cancel it only between its commands"


@dataclass(slots=True)
class Stand:
    """A task at its gate. `turn`: what its coroutine awaits. `answer`: what it will hear: a value, or an error."""

    steps: Standing
    turn: asyncio.Future[Any]
    command: bool
    line: Line | None
    answer: tuple[Any, BaseException | None] | None = None
    #: could its reply arrive at once? That was decided
    decided: bool = False

    def end(self) -> None:
        """The life of its task is over."""
        with suppress(BaseException):
            self.steps.throw(Halt())


def cancelled(task: Task) -> Broken:
    """The error to raise for a command that is cancelled."""
    command = task.op.text if task.op else ""
    return Broken(CANCELLED.format(who=task.worker.name, command=command[:60]), LET_IT_END)
