"""A command at its gate, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class Op:
    """One command that a client is about to send to `server`; a wait, or the begin (`server` is "" then).

    `identity`: the command exactly, for telling states apart; `text`: for people. `local`: no other worker can
    see it or be seen by it (BEGIN, SAVEPOINT). `reads`: it certainly changes nothing on its server.
    """

    server: str
    text: str
    identity: bytes
    local: bool = False
    reads: bool = False


class Step(NamedTuple):
    """One line of a schedule as it is told. `at`: µs of virtual time; `worker`: "" for what nobody did."""

    at: int
    worker: str
    task: str
    kind: str
    command: str
    reply: str
    faults: int
