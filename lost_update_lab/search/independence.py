"""A step that is taken again does the same again: it depends on its worker and its server, and on nothing else.

Take a worker that stands before the same command, having seen the same, at a server that holds the same. It comes to
the same next command, and leaves the same on the server, whatever the other workers have done elsewhere meanwhile. So
two steps of two workers on two servers need not be executed in both orders. After A's and then B's, the moment after
B's and then A's is known in advance. If the search has been at that moment, it need not go there again.

A step has no footprint if it could touch, or be touched by, more than its worker and its server: a worker waits in a
server's queue, sleeps through polls in vain, or holds something in the same server that the step may run into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lost_update_lab.model.digest import digest
from lost_update_lab.model.disk import FILES
from lost_update_lab.model.transitions import STEPS, Kind, Transition
from lost_update_lab.model.workers import State, Task, WorkerProcess
from lost_update_lab.schedule import faults, virtual_clock
from lost_update_lab.schedule.state import Moment
from lost_update_lab.schedule.world import World

_OF_ONE = frozenset({Kind.CRASH, Kind.RENEWAL_DIES, Kind.RENEWAL_LIVES, Kind.CLOCK_JUMP})


class Footprint(NamedTuple):
    """All that a transition depends on, as a digest, and the two parts that it may change ("": none)."""

    key: bytes
    server: str
    worker: str


class Independence:
    """What the executed transitions did to the parts of a moment."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[bytes, bytes]] = {}

    def note(self, before: Moment, transition: Transition, footprint: Footprint, after: Moment) -> None:
        """`transition`, taken at `before`, led to `after`."""
        server, worker = after.servers.get(footprint.server, b""), after.workers.get(footprint.worker, b"")
        if _changed(before, transition, footprint, server, worker) == after:
            self._known[footprint.key] = server, worker

    def leads_to(self, moment: Moment, transition: Transition, footprint: Footprint | None) -> bytes | None:
        """The key of the moment to which this transition would lead from `moment`. None: that is not known."""
        known = self._known.get(footprint.key) if footprint else None
        return _changed(moment, transition, footprint, *known).key if footprint and known else None


def _changed(
    before: Moment, transition: Transition, footprint: Footprint, server: bytes, worker: bytes
) -> Moment:
    spent = before.spent
    if transition.cost and transition.kind is not Kind.LAG:
        spent = tuple(sorted([*spent, faults.fault_of(transition)]))
    servers = {footprint.server: server} if footprint.server else {}
    return before.changed(servers, {footprint.worker: worker} if footprint.worker else {}, spent)


def footprints(
    world: World, moment: Moment, transitions: Sequence[Transition]
) -> tuple[Footprint | None, ...]:
    """What each transition depends on at this moment of the run. None: it depends on too much."""
    if world.waiting_line or any(_sleeps_through_polls(task) for task in world.tasks):
        return (None,) * len(transitions)
    seen = {worker.name: _seen_of(worker) for worker in world.workers}
    return tuple([_footprint(world, moment, each, seen) for each in transitions])


def _footprint(
    world: World, moment: Moment, transition: Transition, seen: Mapping[str, tuple[bool, ...]]
) -> Footprint | None:
    """`seen`: worker → what others see of it."""
    server = worker = ""
    if transition.kind in STEPS:
        task = world.task(transition.who)
        if not _alone_there(world, task):
            return None
        assert task.op is not None
        server, worker = task.op.server, task.worker.name
    elif transition.kind in _OF_ONE:
        server = transition.who if transition.who in world.servers else ""
        worker = "" if server else transition.who.partition(".")[0]
    else:
        return None
    parts = moment.servers.get(server, b""), moment.workers.get(worker, b"")
    others = [each for name, each in seen.items() if name != worker]
    around = repr((str(transition), moment.clock, others, _disk(world, moment, worker))).encode()
    return Footprint(digest(*depends_on(*parts), around), server, worker)


def depends_on(server: bytes, worker: bytes) -> Iterator[bytes]:
    """The parts that count. (The must-fail control of the tests leaves one out.)"""
    yield server
    yield worker


def _sleeps_through_polls(task: Task) -> bool:
    return task.vain_since is not None and task.state is State.WAIT


def _seen_of(other: WorkerProcess) -> tuple[bool, bool, bool]:
    """The part of another worker that a step can depend on, or touch: is it due, is it outside, may it have missed the
    step?"""
    due = any(t.state is State.READY and t.due is not None and not other.paused for t in other.tasks)
    return due, virtual_clock.is_outside(other), any(task.looks_again for task in other.tasks)


def _disk(world: World, moment: Moment, worker: str) -> bytes:
    """A worker that has a file open is told what the disk holds at each of its steps, and its death changes that."""
    opened = world.disk is not None and worker and world.disk.opened(world.worker(worker).index)
    return moment.servers[FILES] if opened else b""


def _alone_there(world: World, task: Task) -> bool:
    """Is this command untouched by anything that another session holds, or has done inside its transaction?"""
    op = task.op
    assert op is not None
    if not op.server:  # it begins
        return True
    server = world.servers[op.server]
    others = [s for w in world.workers if w is not task.worker for s in w.sessions.get(op.server, ())]
    return server.undisturbed(op, list(task.worker.sessions.get(op.server, ())), others)
