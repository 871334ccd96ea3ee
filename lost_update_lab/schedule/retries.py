"""Tries: a waiter that tries again, after a try that left nothing behind, draws the same random numbers again.

A lock that makes a new token for each try (Redlock) never does the same twice. So each order of its tries would be a
moment of its own, without end. But a token is only a name. When a try is over, no server holds its name, and no other
worker was told it, then the next try may use the same name: the difference is invisible. Its rounds are then equal, as
those of a waiter with one token are (polls.py).

    A: SET lock a1 NX → OK on one node of three; deletes it; sleeps     a1 is nowhere: the next try is called a1 too
    A: SET lock a1 NX → OK on one node of three; B reads "a1"; …        B knows a1: the next try is called a2

Two tries are compared by what they sent, without their names. A number that is sent in a form in which it is not
recognised makes them differ, and then nothing is drawn again. A number that names nothing (how long to sleep) may come
again by chance anyway. The referee of the tests (Reduction.NONE) draws new numbers for each try.
"""

from __future__ import annotations

from collections.abc import Iterable

from lost_update_lab.model.chance import Drawn, Try
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule.world import World


def draw(task: Task, drawn: Drawn) -> None:
    task.worker.chance.draws += 1
    task.worker.trying.drawn += (drawn,)


def send(task: Task, identity: bytes) -> None:
    task.worker.trying.sent += (identity,)


def hear(world: World, task: Task, what: object) -> None:
    """The task is told this. Does it contain another worker's name?"""
    for worker in world.workers:
        trying = worker.trying
        if worker is not task.worker and trying.drawn and not trying.told:
            said = what if isinstance(what, bytes) else repr(what).encode()
            trying.told = _names(trying, (said,))


def close(task: Task) -> None:
    """The thread is about to wait, so its try is over."""
    if not task.main:
        return
    worker, trying = task.worker, task.worker.trying
    sent = tuple(_without(trying.drawn, command) for command in trying.sent)
    trying.repeats = bool(sent) and sent == trying.before
    trying.before, trying.sent = sent, ()
    trying.back, trying.begin = trying.begin, worker.chance.copy()


def again(world: World, task: Task) -> bool:
    """The wait is over. Returns whether the next try may draw the numbers that this one drew; if so, it will."""
    worker, trying = task.worker, task.worker.trying
    if not task.main:
        return False
    found = (
        world.full
        and bool(trying.drawn)
        and trying.repeats
        and not trying.told
        and not any(other.alive for other in worker.tasks[1:])
        and not any(world.servers[name].holds(list(of)) for name, of in worker.sessions.items())
        and not _names(trying, (server.traces() for server in world.servers.values()))
    )
    if found:
        worker.chance = trying.back.copy()
        trying.begin = trying.back
    trying.drawn, trying.told, trying.repeats = (), False, False
    return found


def _names(trying: Try, texts: Iterable[bytes]) -> bool:
    """Do the texts contain any of its names?"""
    forms = [form for drawn in trying.drawn for form in drawn]
    return any(any(map(text.__contains__, forms)) for text in texts)


def _without(drawn: tuple[Drawn, ...], command: bytes) -> bytes:
    for place, forms_of_one in enumerate(drawn):
        for form in forms_of_one:
            if form in command:
                command = command.replace(form, b"\0name %d\0" % place)
    return command
