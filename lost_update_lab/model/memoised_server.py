"""A memoised server: what it holds, and what it answered when it held the same and was asked the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lost_update_lab.model.commands import Op
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.workers import Task

#: a session: the number of its worker, the number of its thread, and its place among that thread's connections
Who = tuple[int, int, int]


class MemoisedServer(Plain):
    """What every server is asked during an in-memory run. No worker waits in a server there: where one would, the
    schedule is executed."""

    lags = learns = False
    name = ""

    def __init__(self, contents: bytes, everything: bytes = b"") -> None:
        self.changed, self.version = False, 0
        self.sessions: dict[Who, Any] = {}
        self.seen, self.everything = contents, everything

    def copy(self) -> Self:
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        twin.sessions = dict(self.sessions)
        return twin

    def begin(self, known: int = -1) -> None:
        raise AssertionError("an in-memory run is copied, and not begun again")

    def touched(self) -> None:
        """The server holds something else now."""
        self.version, self.changed = self.version + 1, True

    def before_step(self, op: Op) -> None:
        pass

    def contents(self) -> bytes:
        return self.seen

    def traces(self) -> bytes:
        return self.everything or self.contents() + self.hidden()

    def memoised(self) -> MemoisedServer:
        return self.copy()

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        return []

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        raise NotImplementedError

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        raise NotImplementedError

    def holds(self, sessions: Sequence[Any]) -> bool:
        raise NotImplementedError

    def watch(self) -> None:
        pass

    def bypassed(self) -> str:
        return ""
