"""The disk in an in-memory run: what each thread does to it is known from where it was told the same (gates/files.py).

A thread that touches a file, or has one open, is told all that the disk holds. So what it leaves there follows from
what it was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lost_update_lab.model.commands import Op
from lost_update_lab.model.disk import FILES, HeldOnDisk
from lost_update_lab.model.memoised_server import MemoisedServer


class MemoisedDisk(MemoisedServer):
    """`processes`: workers ask whether other processes live."""

    name, loses_replies = FILES, False

    def __init__(self, held: HeldOnDisk, processes: bool) -> None:
        super().__init__(held.contents())
        self.held, self.processes = held, processes

    def becomes(self, held: HeldOnDisk) -> None:
        self.held, self.seen = held, held.contents()
        self.touched()

    def opened(self, worker: int) -> bool:
        return self.held.opened(worker)

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        self.becomes(self.held.without(sessions))

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        return True  # what others have open, and have locked, is a part of what it holds

    def holds(self, sessions: Sequence[Any]) -> bool:
        return bool(sessions) and (self.processes or self.held.holds(sessions))
