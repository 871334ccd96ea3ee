"""Locks of this process that the operations hold while they send commands. After a schedule nothing shows them.

A worker stands for a process of its own. Such a lock keeps out nobody there, and yet the workers meet at it here. If
they wait for it, the search sees that nothing goes on. If they ask once and turn away, only a look in between shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Semaphore
from typing import Any

from lost_update_lab.model.commands import Step
from lost_update_lab.runs.look import Look
from lost_update_lab.scenarios.carried import values
from lost_update_lab.schedule.world import World
from lost_update_lab.under_test.scenario import Scenario

LOCKED = (
    "the operations hold a lock of this process ({names}) while they send commands, and it keeps out nobody in another "
    "one: workers stand for processes of their own"
)
#: how many of them are named
SHOWN = 3


class Meanwhile:
    """Looks after each step of one run: which locks are held that are free now? `held`: what modules hold."""

    def __init__(self, scenario: Scenario, held: Look) -> None:
        self.locks = {**held.locks(), **_carried(scenario).locks()}
        self._before, self.held = set(self._taken()), set[str]()

    def __call__(self, run: World, step: Step) -> None:
        self.held.update(name for name in self._taken() if name not in self._before)

    def _taken(self) -> Iterator[str]:
        return (name for name, lock in self.locks.items() if _is_taken(lock))

    @property
    def told(self) -> str:
        """A sentence. "": there is none."""
        return LOCKED.format(names=", ".join(sorted(self.held)[:SHOWN])) if self.held else ""


def _carried(scenario: Scenario) -> Look:
    look = Look()
    for worker in scenario.callers:
        for operation in worker.operations:
            for name, value in values(operation):
                look.at_value(f"{worker.name}'s {name}", value)
    return look


def _is_taken(lock: Any) -> bool:
    """An RLock has no method that tells."""
    return not lock._value if isinstance(lock, Semaphore) else repr(lock).startswith("<locked")
