"""Attempts: who tries again, after a try that left nothing behind, draws the same random numbers as for that try.

A lock that makes a new token for each try (Redlock) never does the same twice, so each order of its tries would be a
moment of its own, without end. But a token is only a name. When a try is over, no server holds its name and nobody
else was told it, then the next try may be called the same: nobody can tell. Its rounds are the same then, as those of
a waiter with one token are (rounds.py).

    A: SET lock a1 NX → OK on one node of three; deletes it; sleeps     a1 is nowhere: the next try is called a1 too
    A: SET lock a1 NX → OK on one node of three; B reads "a1"; …        B knows a1: the next try is called a2

That two tries did the same is seen by what they sent, their names left out: a number that is sent in a form in which
it is not recognised makes them differ, and then nothing is drawn again. A number that names nothing (how long to
sleep) may come again by chance anyway. The referee of the tests (Reduction.NONE) draws new numbers for each try.
"""

from __future__ import annotations

import random
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lost_update_lab.model.workers import Task
    from lost_update_lab.runs.run import Run

#: a number below this is no name: it may be drawn twice
LEAST_NAME = 1 << 32
_FEWEST_BYTES = 4


class Moderate(random.Random):
    """Never an extreme share: who sleeps for a hundredth of the usual time polls a hundred times as often, and sees
    nothing else."""

    def random(self) -> float:
        return 0.25 + super().random() / 2

    def getrandbits(self, k: int) -> int:  # whoever overrides random() loses it
        return super().getrandbits(k)


#: a number that was drawn, in all forms in which it may be written down; (): it names nothing
Drawn = tuple[bytes, ...]


@dataclass(slots=True)
class Chance:
    """How far a worker is in its random numbers: how many were drawn, in all, and at each place of its code."""

    draws: int = 0
    places: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Chance:
        return Chance(self.draws, self.places.copy())


@dataclass(slots=True)
class Attempt:
    """What a worker did since its main thread last waited, or before that waits now."""

    drawn: tuple[Drawn, ...] = ()
    sent: tuple[bytes, ...] = ()
    #: another worker was told one of the names
    told: bool = False
    #: what the attempt before had sent, its names left out; this one, which is over, did the same
    before: tuple[bytes, ...] = ()
    repeats: bool = False
    #: where the worker's numbers were when this attempt began; and the one before, when this one is over
    begin: Chance = field(default_factory=Chance)
    back: Chance = field(default_factory=Chance)


def draw(task: Task, drawn: Drawn) -> None:
    task.worker.chance.draws += 1
    task.worker.attempt.drawn += (drawn,)


def send(task: Task, identity: bytes) -> None:
    task.worker.attempt.sent += (identity,)


def hear(run: Run, task: Task, what: object) -> None:
    """The task is told this. Does it hear of another worker's name?"""
    for worker in run.workers:
        attempt = worker.attempt
        if worker is not task.worker and attempt.drawn and not attempt.told:
            said = what if isinstance(what, bytes) else repr(what).encode()
            attempt.told = _names(attempt, (said,))


def close(task: Task) -> None:
    """The thread is about to wait: its attempt is over."""
    if not task.main:
        return
    worker, attempt = task.worker, task.worker.attempt
    sent = tuple(_without(attempt.drawn, command) for command in attempt.sent)
    attempt.repeats = bool(sent) and sent == attempt.before
    attempt.before, attempt.sent = sent, ()
    attempt.back, attempt.begin = attempt.begin, worker.chance.copy()


def again(run: Run, task: Task) -> bool:
    """The wait is over. → may the next attempt draw what this one drew? Then it will."""
    worker, attempt = task.worker, task.worker.attempt
    if not task.main:
        return False
    found = (
        run.full
        and bool(attempt.drawn)
        and attempt.repeats
        and not attempt.told
        and not any(other.alive for other in worker.tasks[1:])
        and not any(run.servers[name].holds(list(of)) for name, of in worker.sessions.items())
        and not _names(attempt, (server.traces() for server in run.servers.values()))
    )
    if found:
        worker.chance = attempt.back.copy()
        attempt.begin = attempt.back
    attempt.drawn, attempt.told, attempt.repeats = (), False, False
    return found


def forms(value: Any) -> Drawn:
    """In which forms this random number may be found again, where it is a name."""
    if isinstance(value, bytes) and len(value) >= _FEWEST_BYTES:
        found = [value, repr(value)[2:-1].encode(), value.hex().encode(), value.hex().upper().encode()]
        found += [b64encode(value).rstrip(b"="), urlsafe_b64encode(value).rstrip(b"=")]
        return (*found, *_forms_of_uuid(int.from_bytes(value, "big"), len(value)))
    if isinstance(value, int) and value >= LEAST_NAME:
        size = 16 if value.bit_length() > 64 else 8
        return (str(value).encode(), b"%x" % value, b"%X" % value, *_forms_of_uuid(value, size))
    return ()


def _forms_of_uuid(value: int, size: int) -> list[bytes]:
    if size != 16 or value >= 1 << 128:
        return []
    made = [UUID(int=value), *(UUID(int=value, version=version) for version in (1, 4))]
    return [form.encode() for each in made for form in (str(each), each.hex)]


def _names(attempt: Attempt, texts: Iterable[bytes]) -> bool:
    """Is any of its names in there?"""
    return any(form in text for text in texts for drawn in attempt.drawn for form in drawn)


def _without(drawn: tuple[Drawn, ...], command: bytes) -> bytes:
    for place, forms_of_one in enumerate(drawn):
        for form in forms_of_one:
            if form in command:
                command = command.replace(form, b"\0name %d\0" % place)
    return command
