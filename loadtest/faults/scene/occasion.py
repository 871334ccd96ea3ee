"""One event that strikes several cells at once: they meet before it, it happens once, and each goes its own way.

cell A   crowd …… meets ──┐                 ┌── victim inside …… meets ──┐              ┌── rivals …… settle
cell B   crowd … meets    ├─ prepare, once ─┤   victim inside … meets    ├─ event, once ┤   rivals …… settle
cell C   crowd …………… meets ┘                 └── (leaves: its lock is broken)            ┘
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0


class Occasion:
    """`meet` returns what the action returned; the last one who comes carries it out."""

    def __init__(self, expected: int = 1) -> None:
        self._expected = expected
        self._arrived = 0
        self._round = 0
        self._came_of_it: dict[int, tuple[Any, BaseException | None]] = {}
        self._all = threading.Condition()

    def meet(self, action: Callable[[], Any]) -> Any:
        """Raises what the action raised, in every cell; TimeoutError if the others do not come."""
        with self._all:
            mine = self._round
            self._arrived += 1
            self._all.notify_all()
            here = self._all.wait_for(
                lambda: mine != self._round or self._arrived >= self._expected, PATIENCE
            )
            if not here:
                self._arrived -= 1  # who does not come on leaves: that is when one fewer is expected
                raise TimeoutError("the other cells of the event did not come")
            if mine == self._round:
                self._happens(action)
        value, error = self._came_of_it[mine]
        if error is not None:
            raise error
        return value

    def leave(self) -> None:
        """This cell comes to no further meeting: the others need not wait for it."""
        with self._all:
            self._expected -= 1
            self._all.notify_all()

    def _happens(self, action: Callable[[], Any]) -> None:
        try:
            self._came_of_it[self._round] = action(), None
        except Exception as error:  # noqa: BLE001  (it is raised in every cell)
            self._came_of_it[self._round] = None, error
        self._round += 1
        self._arrived = 0
        self._all.notify_all()
