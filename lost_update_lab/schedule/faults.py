"""Faults as steps of a schedule: which can touch the subject now, and what each does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lost_update_lab.model.bounds import SECOND, Fault
from lost_update_lab.model.commands import Op
from lost_update_lab.model.transitions import Kind, Option
from lost_update_lab.model.workers import State, Task, Worker

if TYPE_CHECKING:
    from lost_update_lab.runs.run import Run


_FAULTS = {kind: Fault(kind.value) for kind in Kind if kind.value in set(Fault)} | {Kind.LAG: Fault.FAILOVER}


def options(run: Run, steppers: Sequence[Task]) -> list[Option]:
    """The faults that may come now. Also notes which ones can touch the subject at all.

    A fault that nobody else can see at that moment is offered once, when its victim has just arrived at its
    gate: coming later, past the steps of others, it would lead to the same states. So would what happens to a
    server, past steps on other servers (`run.touched`: where something has happened since faults were last offered).
    """
    possible = list(_possible(run, steppers))
    run.applicable.update(fault_of(option) for option, _ in possible)
    lagging = [server.name for server in run.servers.values() if server.lags]
    offered = [Option(Kind.FAILOVER, name) for name in lagging if name in run.touched or not run.full]
    if used(run) < run.bounds.faults:
        kinds = run.bounds.kinds
        offered += [o for o, seen in possible if fault_of(o) in kinds and (seen or not run.full)]
    for task in run.tasks:
        task.fresh = False
    run.touched.clear()
    return offered


def used(run: Run) -> int:
    """How many faults are spent, or begun: a replica that lags may still take over."""
    return len(run.spent) + sum(s.lags and s.name not in run.charged for s in run.servers.values())


def charge(run: Run, name: str) -> None:
    """The lag of that server's replica is noticed: it takes over, or somebody waits for it in vain. Until then
    nothing has happened to anybody."""
    if name not in run.charged:
        run.charged.add(name)
        run.spent.append(Fault.FAILOVER)


def fault_of(option: Option) -> Fault:
    return _FAULTS[option.kind]


def _possible(run: Run, steppers: Sequence[Task]) -> Iterator[tuple[Option, bool]]:
    """Yield each fault, and whether it must be offered at this very decision."""
    for worker in run.workers:
        if worker.crashed or worker.paused:
            continue
        if (
            run.looks and worker.main.state is State.READY
        ):  # also before its first step: it may look right after
            yield Option(Kind.CLOCK_JUMP, worker.name, 1), worker.main.fresh
            yield Option(Kind.CLOCK_JUMP, worker.name, -1), worker.main.fresh
        if worker.main.due is None:
            continue
        fresh = any(task.fresh for task in worker.tasks if task.state is State.READY)
        now = fresh or _seen_by_others(run, worker)
        standing = [t for t in worker.tasks if t.state in (State.READY, State.BLOCKED)]
        if standing and (not worker.finished or len(worker.tasks) > 1):
            yield Option(Kind.CRASH, worker.name), now
        others = [t for t in worker.tasks if not t.main and t.alive]
        if others and worker.main.state is State.READY:
            yield Option(Kind.RENEWAL_LIVES, worker.name), now
        for task in others:
            if task.state is State.READY:
                yield Option(Kind.RENEWAL_DIES, task.name), task.fresh
    for task in steppers:
        if task.op and task.op.server and not task.op.local:
            yield Option(Kind.LOST_REPLY, task.name), task.fresh or not task.op.reads
        if task.op and not task.op.reads and run.servers[task.op.server].fails_over:
            yield Option(Kind.LAG, task.name), True
    for server in run.servers.values():
        if server.leases():
            yield Option(Kind.CLOCK_JUMP, server.name), server.name in run.touched
    for worker in run.workers if run.looks else ():  # between two looks there may be nothing but a sleep
        asleep = [task for task in worker.tasks if task.state is State.WAIT]
        if asleep and not worker.crashed and not worker.paused and worker.main.state is not State.READY:
            yield Option(Kind.CLOCK_JUMP, worker.name, 1), any(task.fresh for task in asleep)
            yield Option(Kind.CLOCK_JUMP, worker.name, -1), any(task.fresh for task in asleep)


def _seen_by_others(run: Run, worker: Worker) -> bool:
    """Would others see at once that the worker's sessions end: a lock, a place in a queue?"""
    if any(task.state is State.BLOCKED for task in worker.tasks):
        return True
    return any(run.servers[name].holds(list(worker.sessions.get(name, ()))) for name in run.touched)


def apply(run: Run, option: Option) -> None:
    """Spend the fault. PAUSE and LOST_REPLY go on as a tick and as a step."""
    if option.kind is not Kind.LAG:
        run.spent += [fault_of(option)] * option.cost
    run.progress()
    if option.kind is Kind.LOST_REPLY:
        run.task(option.who).worker.struck = True
    elif option.kind is Kind.PAUSE:
        for name in option.who.split("+"):
            _pause(run, run.worker(name))
    elif option.kind is Kind.CRASH:
        _crash(run, run.worker(option.who))
    elif option.kind is Kind.RENEWAL_DIES:
        task = run.task(option.who)
        task.state = State.DEAD
        task.worker.cuts += (task.name,)
        run.record(task.worker.name, task.name, option.kind.value, "dies alone", "")
    elif option.kind is Kind.RENEWAL_LIVES:
        worker = run.worker(option.who)
        worker.main.state = State.DEAD
        worker.cuts += (worker.name,)  # its other threads may ask whether it lives
        _end_sessions(run, worker.tasks[:1])
        run.record(worker.name, worker.name, option.kind.value, "dies, its other threads go on", "")
    elif option.kind is Kind.CLOCK_JUMP:
        _clock_jump(run, option)
    elif option.kind is Kind.LAG:
        server = run.servers[(run.task(option.who).op or Op("", "", b"")).server]
        server.lag()
        run.record("", server.name, option.kind.value, "the replica gets no more writes", "")


def fail_over(run: Run, name: str) -> None:
    """The replica that had fallen behind is the primary now; whoever was connected to the old one is cut off."""
    server = run.servers[name]
    charge(run, name)
    for worker in run.workers:
        worker.struck = worker.struck or name in worker.sessions
        if name in worker.sessions:
            worker.cuts += (name,)
        server.end_sessions(list(worker.sessions.get(name, ())), cut=True)
    lost = server.fail_over()
    run.progress()
    run.record("", name, Kind.FAILOVER.value, "the replica takes over", f"without {lost}")


def _clock_jump(run: Run, option: Option) -> None:
    seconds = f"{run.bounds.jump / SECOND:g} s"
    if option.who in run.servers:
        gone = run.servers[option.who].jump(run.bounds.jump)
        run.record("", option.who, option.kind.value, f"its clock jumps ahead by {seconds}", f"gone: {gone}")
        return
    worker = run.worker(option.who)
    worker.offset += option.number * run.bounds.jump
    way = "ahead" if option.number > 0 else "back"
    run.record(worker.name, worker.name, option.kind.value, f"its clock jumps {way} by {seconds}", "")


def _pause(run: Run, worker: Worker) -> None:
    from lost_update_lab.schedule.virtual_time import shared

    worker.paused, worker.offered = True, (shared(run), run.now)
    run.record(worker.name, worker.name, "pause", "stands still", "")


def _crash(run: Run, worker: Worker) -> None:
    worker.crashed = True
    for task in worker.tasks:
        if task in run.waiting_line:
            run.waiting_line.remove(task)
        if task.alive:
            task.state = State.DEAD
    run.record(worker.name, worker.name, "crash", "crashes", "")
    _end_sessions(run, worker.tasks)


def _end_sessions(run: Run, tasks: Sequence[Task]) -> None:
    for name, server in run.servers.items():
        used = tasks[0].worker.sessions.get(name, {})
        server.end_sessions([session for session, task in used.items() if task in tasks])
