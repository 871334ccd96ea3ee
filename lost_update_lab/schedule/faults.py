"""Faults as steps of a schedule: which can touch the system now, and what each does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lost_update_lab.model.bounds import SECOND, Fault
from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import Unknown
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.model.workers import State, Task, WorkerProcess
from lost_update_lab.schedule.world import World

_FAULTS = {kind: Fault(kind.value) for kind in Kind if kind.value in set(Fault)} | {Kind.LAG: Fault.FAILOVER}


def transitions(world: World, steppers: Sequence[Task]) -> list[Transition]:
    """The faults that may come now. Also notes which ones can touch the system at all.

    A fault that no other worker can see at that moment is offered once, when its victim has just arrived at its gate.
    If it came later, past the steps of others, it would lead to the same states: but for a failover, which nobody may
    be there to see then. The same holds for a fault of a server, past steps on other servers (`world.touched`: where
    something has happened since faults were last offered).
    """
    lagging = [server.name for server in world.servers.values() if server.lags]
    offered = [Transition(Kind.FAILOVER, name) for name in lagging if name in world.touched or not world.full]
    bounds, spent = world.bounds, begun(world)
    some_left = len(spent) < bounds.faults
    for transition, seen in _possible(world, steppers, some_left):
        fault = fault_of(transition)
        world.applicable.add(fault)
        if some_left and (seen or not world.full) and fault in bounds.kinds and bounds.allow(spent, fault):
            offered.append(transition)
    for task in world.tasks:
        task.fresh, task.stood_at = False, world.shown
    world.touched.clear()
    return offered


def begun(world: World) -> list[Fault]:
    """The faults that are spent or begun: a replica that lags may still take over."""
    lags = sum(s.lags and s.name not in world.charged for s in world.servers.values())
    return [*world.spent, *[Fault.FAILOVER] * lags]


def charge(world: World, name: str) -> None:
    """The lag of that server's replica is noticed: the replica takes over, or a worker waits for it in vain. Until then
    the lag has affected nothing."""
    if name not in world.charged:
        world.charged.add(name)
        world.spent.append(Fault.FAILOVER)


def fault_of(transition: Transition) -> Fault:
    return _FAULTS[transition.kind]


def _possible(world: World, steppers: Sequence[Task], offers: bool) -> Iterator[tuple[Transition, bool]]:
    """Yield each fault, and whether it must be offered at this very decision, if any is offered."""
    for worker in world.workers:
        if not (worker.crashed or worker.paused):
            yield from _of_worker(world, worker, offers)
    for task in steppers:
        answered = not task.unheard and task.op and not (task.op.local or task.op.silent)
        if answered and task.op and task.op.server and world.servers[task.op.server].loses_replies:
            # its session ends, too; and past a wait of others, a read's reply leads to other states
            passed = task.stood_at != world.shown
            seen = task.fresh or passed or not task.op.reads
            seen = seen or (offers and _seen_by_others(world, task.worker))
            yield Transition(Kind.LOST_REPLY, task.name), seen
        if task.op and not task.op.reads and world.servers[task.op.server].fails_over:
            yield Transition(Kind.LAG, task.name), True
    for server in world.servers.values():
        if server.timed or server.tells_time or server.leases():
            yield Transition(Kind.CLOCK_JUMP, server.name), server.name in world.touched
    for worker in world.workers if world.looks else ():  # between two looks there may be nothing but a sleep
        asleep = any(task.state is State.WAIT for task in worker.tasks)
        acts = any(task.state is State.READY for task in worker.line)
        if asleep and not (worker.crashed or worker.paused or acts):
            yield from _jumps(worker)


def _jumps(worker: WorkerProcess) -> Iterator[tuple[Transition, bool]]:
    fresh = any(task.fresh for task in worker.tasks)
    yield Transition(Kind.CLOCK_JUMP, worker.name, 1), fresh
    yield Transition(Kind.CLOCK_JUMP, worker.name, -1), fresh


def _of_worker(world: World, worker: WorkerProcess, offers: bool) -> Iterator[tuple[Transition, bool]]:
    fresh = any(task.fresh for task in worker.tasks)
    line = any(task.state is State.READY and not task.beside for task in worker.tasks)
    if world.looks and line:  # also before its first step: it may look right after
        yield from _jumps(worker)
    if worker.main.due is None:
        return
    now = fresh or Fault.FAILOVER in world.spent or (offers and _seen_by_others(world, worker))
    standing = any(t.state in (State.READY, State.BLOCKED) and not t.unheard for t in worker.tasks)
    asleep = any(task.state is State.WAIT and not task.unheard for task in worker.tasks)
    standing = standing or (asleep and _is_missed(world, worker))  # others would see it end now
    if standing and (not worker.finished or len(worker.tasks) > 1) and not _is_the_last(world, worker):
        yield Transition(Kind.CRASH, worker.name), now
    if len(worker.tasks) == 1:
        return
    others = [task for task in worker.tasks if task.beside and task.alive]
    if others and (line or (worker.main.state is State.WAIT and _is_missed(world, worker))):
        yield Transition(Kind.RENEWAL_LIVES, worker.name), now
    for task in others:
        if task.state is State.READY and not task.coroutine:
            # its other threads may have asked meanwhile whether it is alive
            yield Transition(Kind.RENEWAL_DIES, task.name), fresh


def _is_the_last(world: World, worker: WorkerProcess) -> bool:
    """Has the other delivery of its task crashed? A queue would deliver the task once more, and here nobody does."""
    stands_for = world.bounds.stands_for
    return any(
        other.crashed and (stands_for(other.index) == worker.index or stands_for(worker.index) == other.index)
        for other in world.workers
    )


def _is_missed(world: World, worker: WorkerProcess) -> bool:
    """Does it hold something that others wait or look for? Does another worker begin when it crashes?"""
    if any(other.dormant and world.bounds.stands_for(other.index) == worker.index for other in world.workers):
        return True
    return _holds(world, worker, world.servers)


def _seen_by_others(world: World, worker: WorkerProcess) -> bool:
    """Would others see at once that the worker's sessions end? Do they hold a lock, or a place in a queue?"""
    if any(task.state is State.BLOCKED for task in worker.tasks):
        return True
    return _holds(world, worker, world.touched)


def _holds(world: World, worker: WorkerProcess, servers: Iterable[str]) -> bool:
    return any(world.servers[name].holds(list(worker.sessions.get(name, ()))) for name in servers)


def apply(world: World, transition: Transition) -> None:
    """Spend the fault. PAUSE goes on as a tick, LOST_REPLY as a step."""
    if transition.kind is not Kind.LAG:
        world.spent += [fault_of(transition)] * transition.cost
    world.progress()
    if transition.kind is Kind.LOST_REPLY:
        world.task(transition.who).worker.struck = True
    elif transition.kind is Kind.PAUSE:
        for name in transition.who.split("+"):
            _pause(world, world.worker(name))
    elif transition.kind is Kind.CRASH:
        _crash(world, world.worker(transition.who))
    elif transition.kind is Kind.RENEWAL_DIES:
        task = world.task(transition.who)
        _dies(world, task)
        task.worker.cuts += (task.name,)
        world.notify(task)
        world.record(task.worker.name, task.name, transition.kind.value, "dies alone", "")
    elif transition.kind is Kind.RENEWAL_LIVES:
        worker = world.worker(transition.who)
        for task in worker.line:
            _dies(world, task)
        worker.cuts += (worker.name,)  # its other threads may ask whether it is alive
        _end_sessions(world, worker.line)
        world.record(worker.name, worker.name, transition.kind.value, "dies, its other threads go on", "")
    elif transition.kind is Kind.CLOCK_JUMP:
        _clock_jump(world, transition)
    elif transition.kind is Kind.LAG:
        server = world.servers[(world.task(transition.who).op or Op("", "", b"")).server]
        server.lag()
        world.record("", server.name, transition.kind.value, "the replica gets no more writes", "")


def fail_over(world: World, name: str) -> None:
    """The replica that had fallen behind becomes the primary. Every client of the old primary is cut off, between two
    commands or in the middle of a pipeline, which makes a difference. One that has not begun connects afterwards."""
    server = world.servers[name]
    charge(world, name)
    for worker in world.workers:
        if name not in worker.sessions or worker.main.due is None:
            continue
        worker.struck = True
        worker.cuts += (name,)
        for task in worker.tasks:
            if task.alive:
                task.history.add(b"cut", name.encode())
        server.end_sessions(list(worker.sessions[name]), cut=True)
    lost = server.fail_over()
    world.progress()
    world.record("", name, Kind.FAILOVER.value, "the replica takes over", f"without {lost}")


def _clock_jump(world: World, transition: Transition) -> None:
    seconds = f"{world.bounds.jump / SECOND:g} s"
    if transition.who in world.servers:
        gone = world.servers[transition.who].jump(world.bounds.jump)
        world.record(
            "", transition.who, transition.kind.value, f"its clock jumps ahead by {seconds}", f"gone: {gone}"
        )
        return
    worker = world.worker(transition.who)
    worker.offset += transition.number * world.bounds.jump
    way = "ahead" if transition.number > 0 else "back"
    world.record(worker.name, worker.name, transition.kind.value, f"its clock jumps {way} by {seconds}", "")


def _pause(world: World, worker: WorkerProcess) -> None:
    worker.paused, worker.offered = True, (world.shared(), world.now)
    world.record(worker.name, worker.name, "pause", "stands still", "")


def _crash(world: World, worker: WorkerProcess) -> None:
    worker.crashed = True
    for task in (gone := [task for task in worker.tasks if not task.unheard]):
        task.unheard = _goes_on(world, task)
        if not task.unheard:
            _dies(world, task)
    world.record(worker.name, worker.name, "crash", "crashes", "")
    _end_sessions(world, gone)
    for other in world.workers:
        if other.dormant and world.bounds.stands_for(other.index) == worker.index:
            other.dormant, other.main.state = False, State.RUN


def _goes_on(world: World, task: Task) -> bool:
    """Its command waits, and commits by itself: the server executes it once it may, and only then learns that its
    client is gone. That tells it from a crash before the command, if others see meanwhile what else has ended."""
    worker = task.worker
    if task.state is not State.BLOCKED or task.coroutine or not task.op:
        return False
    seen = any(other.alive for other in worker.tasks if other is not task)
    for name, used in worker.sessions.items():
        seen |= world.servers[name].holds([session for session in used if session is not task.session])
    if not seen or not world.servers[task.op.server].commits(task):
        return False
    if task.steps:
        raise Unknown(worker.index)  # what nobody hears was not recorded
    return True


def end(world: World, task: Task) -> None:
    """What a worker that has crashed had sent is done."""
    task.unheard = False
    _dies(world, task)
    _end_sessions(world, [task])


def _dies(world: World, task: Task) -> None:
    if task in world.waiting_line:
        world.waiting_line.remove(task)
    if task.alive:
        task.state = State.DEAD


def _end_sessions(world: World, tasks: Sequence[Task]) -> None:
    for name, server in world.servers.items():
        used = tasks[0].worker.sessions.get(name, {})
        gone = [s for s, task in used.items() if task in tasks and not (task.unheard and s is task.session)]
        server.end_sessions(gone)
