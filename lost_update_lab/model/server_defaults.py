"""The answers (server.py) of a server that has no leases, no replica and no deadlocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import Task


class Plain:
    fails_over = False
    loses_replies = True
    timed = cancels = tells_time = False
    virtual_by = ""

    def listing(self) -> Sequence[tuple[str, str, str, int | None]]:
        return ()

    def leases(self) -> Mapping[str, int]:
        return {}

    def advance(self, now: int) -> list[str]:
        return []

    def deadlocked(self, waiting: Sequence[Task]) -> list[Task]:
        return []

    def abort(self, task: Task) -> None:
        raise NotImplementedError

    def commits(self, task: Task) -> bool:
        return False

    def lets_go(self, sessions: Sequence[Any]) -> bool:
        return False

    def keeps_out(self, sessions: Sequence[Any]) -> bool:
        return False

    def settled(self) -> None:
        pass

    def keeps_rows(self, sessions: Sequence[Any]) -> bool:
        return False

    def watches(self, sessions: Sequence[Any]) -> bool:
        return False

    def watched(self) -> bytes:
        return b""

    def stop(self, session: Any) -> None:
        raise NotImplementedError

    def forget(self, session: Any) -> None:
        pass

    def lag(self) -> None:
        raise NotImplementedError

    def fail_over(self) -> str:
        raise NotImplementedError

    def jump(self, ahead: int) -> str:
        raise NotImplementedError

    def unexplored(self, commits: int) -> Broken | None:
        return None

    def notes(self) -> list[str]:
        return []

    def hidden(self) -> bytes:
        return b""
