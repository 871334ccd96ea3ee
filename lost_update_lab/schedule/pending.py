"""What a thread is about to do, and what it is told when it has done it: the rules at a gate, for real and recorded
threads alike.

A thread stands before a command, waits in its own process, or is blocked in a server. A `Standing` stops where the
thread stands still, and goes on when it is the thread's turn.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from lost_update_lab.model.commands import Op
from lost_update_lab.model.effects import NOBODY
from lost_update_lab.model.workers import Standing, State, Task, halt
from lost_update_lab.schedule import cached_names, polls, random_choice, retries, virtual_clock
from lost_update_lab.schedule.world import World

#: of a command that is a transaction by itself, whose BEGIN and COMMIT are shown
BY_ITSELF = "by itself"
#: of a command that stands where it ended: what it has read, it had read before it waited
WAITED = ", sent earlier: it waited"
LOOKED = "it has looked, and has not locked a row yet"


class Seen(NamedTuple):
    """What a thread is told if it may look at files: what the disk holds, and the rest."""

    disk: bytes
    what: Hashable


def standing(world: World, task: Task, op: Op) -> Standing:
    """Stand before `op` until it is this task's turn."""
    stand(world, task, op)
    yield


def stand(world: World, task: Task, op: Op) -> None:
    if op.server:  # its next command: nobody was told of the one before, if that waited
        task.waited = False
    _stand(world, task, op)


def _stand(world: World, task: Task, op: Op) -> None:
    if world.ending:
        halt(task)
    random_choice.acts(world, task)
    task.worker.met = _meets_another(world, task, op)
    if op.server and not op.local and virtual_clock.is_another(task, op):
        virtual_clock.gives_up(world, task)
    task.stands_before(op)


def waiting(world: World, task: Task, key: object, seconds: float | None, text: str) -> Standing:
    """Wait for `key`, or until the time is over. Returns whether `key` came."""
    wait(world, task, key, seconds, text)
    yield
    return waited(world, task)


def wait(world: World, task: Task, key: object, seconds: float | None, text: str) -> None:
    if world.ending:
        halt(task)
    if key is NOBODY:
        random_choice.sleeps(task)
    task.waits_for(key, Op("", text, text.encode()))
    polls.close(world, task, seconds)


def waited(world: World, task: Task) -> bool:
    what = "woken" if task.notified else "again" if retries.again(world, task) else "time"
    task.history.add(what.encode())
    hear(world, task, what)
    return task.notified


def blocked(world: World, task: Task, seconds: float | None = None, in_vain: bool = False) -> Standing:
    """The server makes this task's command wait. Ends when the task may look for its reply again. `in_vain`: when the
    time is over it will do something else, so what it did until now was a round."""
    block(world, task, seconds, in_vain)
    yield


def block(world: World, task: Task, seconds: float | None = None, in_vain: bool = False) -> None:
    task.is_blocked()
    if in_vain:
        polls.close(world, task, seconds, in_server=True)
    else:
        polls.until(world, task, seconds)
    world.waiting_line.append(task)


def hear(world: World, task: Task, what: Hashable) -> None:
    """The task is told this. Whatever it does until its next gate follows from it, and from the clocks. A thread that
    has a file open may look at the file at any time."""
    disk = world.disk
    if disk is not None and not isinstance(what, Seen) and disk.opened(task.worker.index):
        what = Seen(disk.contents(), what)
        task.history.add(b"disk", what.disk)
    task.heard = what
    retries.hear(world, task, what)
    if world.recorder:
        world.recorder.heard(task)


def tell(world: World, task: Task, op: Op, reply: str) -> None:
    """Write down a command and its reply for the people who read the schedule."""
    task.history.sent.append(op.text)
    task.is_answered()
    retries.send(task, op.identity)
    cached_names.sends(world, task, op.identity)
    if op.alone:
        reply = reply or BY_ITSELF
    if task.waited and not op.local:
        reply = reply + WAITED if reply else WAITED.strip(", ")
    task.waited = False
    if world.trace:
        world.commands.append((op, reply))
    world.record(task.worker.name, task.name, "step", op.text, reply)


def give_up(world: World, task: Task) -> None:
    """Its client gives up the command that is under way. The server may learn of it before the command ends."""
    task.canceling, task.fresh = True, True
    if task.state is not State.READY:
        task.acts_from(world.now)
    world.progress()


def between(world: World, task: Task, op: Op, place: str = "") -> None:
    """The server has begun with `op`: it has looked at rows, and has locked none. Or it has come to this `place`, which
    is told. Others may come now."""
    told = place or LOOKED
    task.history.add(told.encode())
    world.record(task.worker.name, task.name, "step", op.text, told)
    lost = task.loses_reply  # its reply: nothing more is sent that could have another one
    _stand(world, task, replace(op, identity=op.identity + b" looked", silent=lost))


def _meets_another(world: World, task: Task, op: Op) -> bool:
    """See WorkerProcess.met. What a fault has made it undo is no refusal."""
    undoes = op.text == "ROLLBACK" and task is task.worker.main and not task.worker.struck
    return undoes and not _is_alone(world, task)


def _is_alone(world: World, task: Task) -> bool:
    """Is no other live worker inside?"""
    return all(virtual_clock.is_outside(other) for other in world.workers if other is not task.worker)


def end(world: World, task: Task) -> None:
    """The thread has ended."""
    virtual_clock.gives_up(world, task)
    if task.alive:
        task.state, task.fresh = State.DONE, True
    if task is task.worker.main:
        task.worker.alone = not task.worker.met and _is_alone(world, task)
    if task.goes_on_as_another:
        world.collapsed |= world.full  # the other one is where this one was
    elif not (task.coroutine and task.history.is_empty):  # it was at no gate: others wait as they did
        world.progress()
    if not world.ending:
        world.notify(task)
