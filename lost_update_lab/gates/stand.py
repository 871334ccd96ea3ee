"""A task of an event loop at its gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lost_update_lab.model.workers import Halt, Standing
from lost_update_lab.telling.lines import SourceLine


@dataclass(slots=True)
class Stand:
    """A task at its gate. `turn`: what its coroutine awaits. `answer`: what it will hear: a value, or an error.
    `leaves`: what happens if its coroutine, cancelled while it waits for what becomes of its command, is cancelled
    again. Returns whether it is known what follows. None: it does not wait."""

    steps: Standing
    turn: asyncio.Future[Any]
    leaves: Callable[[], bool] | None
    line: SourceLine | None
    answer: tuple[Any, BaseException | None] | None = None
    #: could its reply arrive at once? That was decided
    decided: bool = False
    #: its coroutine was cancelled
    cancelled: bool = False

    def end(self) -> None:
        """The life of its task is over."""
        with suppress(BaseException):
            self.steps.throw(Halt())
