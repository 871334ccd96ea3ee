"""A command at its gate, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: commands of Redis that may take a lock, and their replies when they have taken it
_TAKING = frozenset({"SET", "SETNX", "GETSET", "HSET", "HSETNX"})
_TAKEN = frozenset({"OK", "1", "True"})
#: the ends of a transaction in SQL
ENDS = frozenset({"COMMIT", "ROLLBACK"})


@dataclass(slots=True)
class Op:
    """One command that a client is about to send to `server`, or a wait, or the begin (then `server` is "").

    `identity`: the exact command, to tell states apart; `text`: for people. `local`: no other worker can see it or
    be seen by it (BEGIN, SAVEPOINT). `reads`: it certainly changes nothing on its server. `timed`: its answer, or what
    it writes, depends on the server's clock. `alone`: it is a transaction by itself, which begins when it is sent.
    `silent`: nothing is sent, so no reply can be lost. `lasts`: its session remembers it when its transaction is over.
    `dates`: it begins a transaction in which the server's clock stands still: now() is when this was sent.
    """

    server: str
    text: str
    identity: bytes
    local: bool = False
    reads: bool = False
    timed: bool = False
    alone: bool = False
    silent: bool = False
    lasts: bool = False
    dates: bool = False
    #: queued in a MULTI, and it was told the time, or what is left of leases, when it was sent
    dated: bool = False

    @property
    def changes(self) -> bool:
        """May it change something? The end of a transaction adds nothing to what that has written."""
        return not (self.local or self.reads or self.text in ENDS)


#: a thread looks at a clock before its first command; a task's work is done, and its queue is not told yet
BEGINS = Op("", "begins", b"begins", reads=True)
ACKNOWLEDGES = Op("", "acknowledges", b"acknowledges", reads=True)
#: a coroutine's command is answered, and it has not heard the reply: it may now, or after another of its event loop
HEARS = Op("", "hears", b"hears", reads=True)
#: … it did not at once, and nothing was heard by others since
HEARS_LATER = Op("", "hears", b"hears later", reads=True)
#: a thread is about to look at a clock, which shows each look another time; it did not at once, and nobody has looked
#: since
LOOKS_AT_CLOCK = Op("", "looks at a clock", b"looks", reads=True)
LOOKS_LATER = Op("", "looks at a clock", b"looks later", reads=True)
#: an event loop that has something to do goes on, whatever may arrive
GOES_ON = Op("", "goes on", b"goes on", reads=True)
#: a coroutine waits for another one, or for a thread
AWAITS = Op("", "awaits", b"awaits", reads=True)


class Step(NamedTuple):
    """One line of a schedule as it is told. `at`: µs of virtual time; `worker`: "" for what no worker did."""

    at: int
    worker: str
    task: str
    kind: str
    command: str
    reply: str
    faults: int


def takes(step: Step) -> str:
    """The key that this step has written; "" if the step is not a command that takes a lock."""
    words = step.command.split()
    return words[1] if len(words) > 1 and words[0] in _TAKING and step.reply in _TAKEN else ""
