"""What the scheduler asks of a server. Only the thread that has the baton talks to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lost_update_lab.model.commands import Op
from lost_update_lab.model.memoised_server import MemoisedServer
from lost_update_lab.model.workers import Task


class Server(Protocol):
    """A real server, and the explorer's own way into it beside the workers' clients."""

    name: str
    #: was anything changed there since `begin`?
    changed: bool
    #: does it have a replica that may take over? Does that one lag?
    fails_over: bool

    @property
    def lags(self) -> bool: ...

    #: is what it answers noted, to be known from then on? (in_memory_run.py)
    learns: bool

    #: how often its contents may have changed since `begin`
    version: int

    def begin(self, known: int = -1) -> None:
        """The run starts: the system has put the opening state there, time is 0. What was seen in the run before is
        the same again up to version `known`, and need not be looked at."""

    def touched(self) -> None:
        """A command was executed that may have changed what others can see."""

    def before_step(self, op: Op) -> None:
        """A worker's command comes next."""

    def contents(self) -> bytes:
        """All that a new client could see there now, without the time that leases have left."""

    def traces(self) -> bytes:
        """All that anybody could still find there, also of what makes no state."""

    def memoised(self) -> MemoisedServer:
        """The same as it is known, as it is now: between two runs."""

    def listing(self) -> Sequence[tuple[str, str, str, int | None]]:
        """For people: (server, key, value, end of its lease in µs of virtual time) of what may be a lock."""

    def leases(self) -> Mapping[str, int]:
        """When each lease ends, in µs of virtual time."""

    def advance(self, now: int) -> list[str]:
        """Time is `now`: end the leases that are over. → the keys that are gone."""

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        """Asked after each step: which of these blocked commands are no longer blocked?"""

    def deadlocked(self, waiting: Sequence[Task]) -> list[Task]:
        """Those that wait for each other in a circle."""

    def abort(self, task: Task) -> None:
        """End a deadlock: let the command of this task fail."""

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """Their owner died: what these sessions held is free, at once. `cut`: the owner lives, and notices."""

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        """Does `op`, by a worker with these sessions of its `own`, do the same whatever the sessions of the
        `others` hold, or have done and not committed?"""

    def holds(self, sessions: Sequence[Any]) -> bool:
        """Might others see it when these sessions end?"""

    def lag(self) -> None:
        """From now on no write reaches the replica."""

    def fail_over(self) -> str:
        """The replica takes over: put back what was there when it began to lag. → the writes that are lost."""

    def jump(self, ahead: int) -> str:
        """The server's clock jumps ahead by so many µs. → the keys whose leases it ends."""

    def hidden(self) -> bytes:
        """What else a state consists of: what the replica has."""

    def watch(self) -> None:
        """From now on somebody who talks to this server past the gates is noticed."""

    def bypassed(self) -> str:
        """Who talked to this server past the gates since `watch`? "": nobody."""
