"""One event that strikes several cells at once: they meet before it, it happens once, and each cell goes on alone.

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
    """The last cell to arrive carries out the action. `meet` returns the action's result in every cell."""

    def __init__(self, expected: int = 1) -> None:
        self._expected = expected
        self._arrived = 0
        self._round = 0
        self._came_of_it: dict[int, tuple[Any, BaseException | None]] = {}
        self._all = threading.Condition()

    def meet(self, action: Callable[[], Any]) -> Any:
        """Raises, in every cell, what the action raised. Raises TimeoutError if the other cells do not come."""
        with self._all:
            mine = self._round
            self._arrived += 1
            self._all.notify_all()
            here = self._all.wait_for(
                lambda: mine != self._round or self._arrived >= self._expected, PATIENCE
            )
            if not here:
                self._arrived -= 1  # it was counted as arrived; `leave` will lower what is expected
                raise TimeoutError("the other cells of the event did not come")
            if mine == self._round:
                self._happens(action)
        value, error = self._came_of_it[mine]
        if error is not None:
            raise error
        return value

    def leave(self) -> None:
        """This cell will not meet again, so the others need not wait for it."""
        with self._all:
            self._expected -= 1
            self._all.notify_all()

    def _happens(self, action: Callable[[], Any]) -> None:
        try:
            self._came_of_it[self._round] = action(), None
        except Exception as error:  # noqa: BLE001  (raised in every cell)
            self._came_of_it[self._round] = None, error
        self._round += 1
        self._arrived = 0
        self._all.notify_all()
