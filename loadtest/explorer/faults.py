"""Faults as steps of a schedule: which can touch the subject now, and what each does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from loadtest.explorer.bounds import SECOND, Fault
from loadtest.explorer.options import Kind, Option
from loadtest.explorer.tasks import State, Task, Worker

if TYPE_CHECKING:
    from loadtest.explorer.run import Run


def options(run: Run, steppers: Sequence[Task]) -> list[Option]:
    """The faults that may come now. Also notes which ones can touch the subject at all.

    A fault that nobody else can see at that moment is offered once, when its victim has just arrived at its
    gate: coming later, past the steps of others, it would lead to the same states.
    """
    possible = list(_possible(run, steppers))
    run.applicable.update(Fault(option.kind.value) for option, _ in possible)
    if len(run.spent) >= run.bounds.faults:
        return []
    kinds = run.bounds.kinds
    offered = [o for o, seen in possible if Fault(o.kind.value) in kinds and (seen or not run.full)]
    for task in run.tasks:
        task.fresh = False
    return offered


def _possible(run: Run, steppers: Sequence[Task]) -> Iterator[tuple[Option, bool]]:
    """Yield each fault, and whether it must be offered at this very decision."""
    for worker in run.workers:
        if worker.crashed or worker.paused or worker.main.due is None:
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
        if run.wall_clock_read and worker.main.state is State.READY:
            yield Option(Kind.CLOCK_JUMP, worker.name, 1), worker.main.fresh
            yield Option(Kind.CLOCK_JUMP, worker.name, -1), worker.main.fresh
    for task in steppers:
        if task.op and not task.op.local and task.due is not None:
            yield Option(Kind.LOST_REPLY, task.name), task.fresh or not task.op.reads
    for server in run.servers.values():
        for number in server.losable():
            yield Option(Kind.FAILOVER, server.name, number), True


def _seen_by_others(run: Run, worker: Worker) -> bool:
    """Would others see at once that the worker's sessions end: a lock, a place in a queue?"""
    if any(task.state is State.BLOCKED for task in worker.tasks):
        return True
    return any(server.holds(list(worker.sessions.get(name, ()))) for name, server in run.servers.items())


def apply(run: Run, option: Option) -> None:
    """Spend the fault. PAUSE and LOST_REPLY go on as a tick and as a step."""
    run.spent += [Fault(option.kind.value)] * option.cost
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
        run.record(task.worker.name, task.name, option.kind.value, "dies alone", "")
    elif option.kind is Kind.RENEWAL_LIVES:
        worker = run.worker(option.who)
        worker.main.state = State.DEAD
        _end_sessions(run, worker.tasks[:1])
        run.record(worker.name, worker.name, option.kind.value, "dies, its other threads go on", "")
    elif option.kind is Kind.CLOCK_JUMP:
        worker = run.worker(option.who)
        worker.offset += option.number * run.bounds.jump
        text = f"its clock jumps by {option.number * run.bounds.jump / SECOND:+g} s"
        run.record(worker.name, worker.name, option.kind.value, text, "")
    elif option.kind is Kind.FAILOVER:
        lost = run.servers[option.who].fail_over(option.number)
        run.record("", option.who, option.kind.value, "the replica takes over", f"without {lost}")


def _pause(run: Run, worker: Worker) -> None:
    from loadtest.explorer.timeline import shared

    worker.paused, worker.offered = True, shared(run)
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
