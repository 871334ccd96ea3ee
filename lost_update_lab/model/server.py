"""What the scheduler asks of a server. Only the thread whose turn it is talks to the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.memoised_server import MemoisedServer
from lost_update_lab.model.workers import Task

#: how many ms a reply may take before the server is asked whether the command is blocked
NEWS_WITHIN_MS = 1


class Server(Protocol):
    """A real server, and the explorer's own access to it, separate from the workers' clients."""

    name: str
    #: was anything changed there since `begin`?
    changed: bool
    #: does it have a replica that may take over? Does the replica lag?
    fails_over: bool
    #: is there a network between it and its clients?
    loses_replies: bool
    #: does its clock decide something, in virtual time? Then the time belongs to each state
    timed: bool
    #: has it told anybody the time in this run? Then the time belongs to each state from then on
    tells_time: bool
    #: if a client gives up its command, does it ask the server to cancel it? Else a command that was sent takes effect
    cancels: bool
    #: if so, how it was made virtual
    virtual_by: str

    @property
    def lags(self) -> bool: ...

    #: are its answers noted, to be known from then on? (in_memory_run.py)
    learns: bool

    #: how often its contents may have changed since `begin`
    version: int

    def begin(self, known: int = -1) -> None:
        """The run starts: the system has restored the opening state, and time is 0. Up to version `known`, what was
        seen in the previous run holds again and need not be looked at."""

    def touched(self) -> None:
        """A command was executed which may have changed what others can see."""

    def before_step(self, op: Op) -> None:
        """A worker's command comes next."""

    def contents(self) -> bytes:
        """All that a new client could see there now, except the time that leases have left."""

    def traces(self) -> bytes:
        """All that anyone could still find there, including what is not part of a state."""

    def memoised(self) -> MemoisedServer:
        """The memoised server, as this server is now. Called between two runs."""

    def listing(self) -> Sequence[tuple[str, str, str, int | None]]:
        """For people: (server, key, value, end of its lease in µs of virtual time) of each thing that may be a lock."""

    def leases(self) -> Mapping[str, int]:
        """When each lease ends, in µs of virtual time."""

    def advance(self, now: int) -> list[str]:
        """Time is `now`: end the leases that are over. Returns the keys that are gone."""

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        """Asked after each step: which of these blocked commands are no longer blocked?"""

    def deadlocked(self, waiting: Sequence[Task]) -> list[Task]:
        """The tasks that wait for each other in a circle."""

    def abort(self, task: Task) -> None:
        """End a deadlock: make this task's command fail."""

    def stop(self, session: Any) -> None:
        """The client of this blocked command has given it up, and the server learns of it."""

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """The owner of these sessions died: what they held is free at once. `cut`: the owner lives, and notices."""

    def commits(self, task: Task) -> bool:
        """Does this command, which waits, commit by itself? Then it does so although its client is gone."""

    def lets_go(self, sessions: Sequence[Any]) -> bool:
        """Their threads hang: what they wait for in this server ends with an error. Returns whether there was any."""

    def forget(self, session: Any) -> None:
        """Its client has closed this session: what it had there is gone."""

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        """Does `op` do the same whatever the `others` sessions hold, or have done and not committed? It is sent by a
        worker whose `own` sessions these are."""

    def holds(self, sessions: Sequence[Any]) -> bool:
        """Might other workers see it when these sessions end?"""

    def keeps_out(self, sessions: Sequence[Any]) -> bool:
        """Does one of them hold a lock beyond its transactions? No look at the contents shows it."""

    def keeps_rows(self, sessions: Sequence[Any]) -> bool:
        """Has one of them locked rows, until its transaction ends?"""

    def watches(self, sessions: Sequence[Any]) -> bool:
        """Does one of them watch something? Then a write that no look at the contents shows may count for it."""

    def watched(self) -> bytes:
        """What sessions watch, and whether it was written since."""

    def lag(self) -> None:
        """From now on no write reaches the replica."""

    def fail_over(self) -> str:
        """The replica takes over: restore what was there when it began to lag. Returns the writes that are lost."""

    def jump(self, ahead: int) -> str:
        """The server's clock jumps ahead by this many µs. Returns the keys whose leases that ends."""

    def hidden(self) -> bytes:
        """What else belongs to a state: what the replica has."""

    def settled(self) -> None:
        """After the last run of a search. Raises Broken if something is left that no restore undoes."""

    def unexplored(self, commits: int) -> Broken | None:
        """Why a search that came to its end proves nothing if it has found no loss. `commits`: how many transactions
        others commit at most while one command is under way. None: it does."""

    def notes(self) -> list[str]:
        """What else has to be known of such a search."""

    def watch(self) -> None:
        """From now on, notice a client that talks to this server past the gates."""

    def bypassed(self) -> str:
        """Which client talked to this server past the gates since `watch`? "": none."""
