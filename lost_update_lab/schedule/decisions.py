"""Which thread goes on? The next decision of a schedule is found, taken and applied."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lost_update_lab.model.bounds import SECOND
from lost_update_lab.model.commands import Step
from lost_update_lab.model.errors import LET_IT_SLEEP, MORE_TIME, SHORTER, Broken
from lost_update_lab.model.transitions import FREE, STEPS, Kind, Transition
from lost_update_lab.model.workers import State, Task
from lost_update_lab.schedule import enabled, faults, virtual_clock
from lost_update_lab.schedule.interrupt import INTERRUPTED, TO_ITS_END, Interrupt
from lost_update_lab.schedule.world import World

_now = time.perf_counter  # the real one: workers see another
#: a chooser's answer that cuts a run short
CUT = -1
#: a schedule with more decisions than this would not end
MOST_DECISIONS = 50_000
#: a thread that sends this many commands while no time passes, and only a few different ones, polls without a sleep
MOST_AT_ONCE, FEW_DIFFERENT = 5_000, 10
SPINS = "{who} sends the same commands again and again, and no time passes; last: {last}"


def next_task(world: World) -> Task | None:
    """The task whose turn it is. None: the run is over."""
    while True:
        if world.error:
            raise world.error
        if world.stuck:
            return None
        virtual_clock.notice_unblocked(world)
        for task in world.tasks:
            if task.state is State.RUN:
                return task
        if world.is_left_in_deadlock:
            world.cut = True
            return None
        if all(worker.finished for worker in world.workers) and not _sent(world):
            return None
        transition = _decide(world)
        if transition is None:
            return None
        if task_or_none := apply(world, transition):
            return task_or_none


def _sent(world: World) -> bool:
    """Is something still under way that no worker waits for? What a worker that has crashed had sent may wait for
    ever."""
    return any(
        task.unheard and task.alive and not (task.worker.crashed and task.state is State.BLOCKED)
        for task in world.tasks
    )


def _decide(world: World) -> Transition | None:
    """The next transition. None: the run is over."""
    world.decisions += 1
    _still_bounded(world)
    if prescribed := world.prescribed():
        return prescribed
    transitions = enabled.transitions(world)
    if not transitions:
        world.stuck = True
        return None
    pick = world.choose(world, transitions)
    world.cut = pick == CUT
    return None if world.cut or world.stuck else transitions[pick]  # stuck: enough polls in vain were seen


def _still_bounded(world: World) -> None:
    """Asked at each decision, since a single schedule may be long. Raises Broken."""
    if Interrupt.heard():
        raise Broken(INTERRUPTED, TO_ITS_END)
    if _now() > world.until:
        raise Broken(f"the budget of {world.bounds.budget:g} s ended", MORE_TIME)
    if world.decisions % (2 * MOST_AT_ONCE) == 0 and _spins(world.steps[-MOST_AT_ONCE:], world.now):
        raise Broken(SPINS.format(who=world.steps[-1].worker, last=_last(world)), LET_IT_SLEEP)
    if world.decisions > MOST_DECISIONS:
        told = (
            f"a schedule did not end within {MOST_DECISIONS} decisions; last: {_last(world)}{_longest(world)}"
        )
        raise Broken(told, SHORTER)


def _spins(steps: Sequence[Step], now: int) -> bool:
    """Is this a poll without a sleep?"""
    at_once = len(steps) == MOST_AT_ONCE and steps[0].at == now and len({step.task for step in steps}) == 1
    return at_once and len({step.command for step in steps}) <= FEW_DIFFERENT


def _last(world: World) -> str:
    return ", ".join(step.command for step in world.steps[-4:])


def _longest(world: World) -> str:
    """Waiters are watched until the last lease could end, whoever has it."""
    (_, key), end = max(world.leases().items(), key=lambda lease: lease[1], default=(("", ""), 0))
    return (
        f"; waiters poll until the longest lease could end, that of {key} after {end / SECOND:g} s"
        if key
        else ""
    )


def apply(world: World, transition: Transition) -> Task | None:
    """Take the transition. Returns the task whose turn it is then, if that follows."""
    op = world.task(transition.who).op if transition.kind is Kind.STEP else None
    world.touched.update({op.server} - {""} if op else world.servers)
    if transition.kind not in FREE:
        faults.apply(world, transition)
    if transition.kind is Kind.TICK or transition.kind is Kind.PAUSE:
        virtual_clock.tick(world)
    elif transition.kind is Kind.RESUME:
        virtual_clock.resume(world, transition.who)
    elif transition.kind is Kind.VICTIM:
        virtual_clock.abort(world, world.task(transition.who))
    elif transition.kind is Kind.FAILOVER:
        faults.fail_over(world, transition.who)
    elif transition.kind is Kind.STOP:
        world.stuck = True
    elif transition.kind is Kind.CANCEL:
        return _cancel(world, world.task(transition.who), transition)
    elif transition.kind in STEPS:
        return _step(world, world.task(transition.who), transition)
    return None


def _cancel(world: World, task: Task, transition: Transition) -> Task | None:
    """The server learns that the command was given up: it waits, or it has just begun."""
    if task.state is not State.READY:
        virtual_clock.cancel(world, task)
        return None
    task.is_canceled(begin=bool(transition.number))
    return _step(world, task, transition)


def _step(world: World, task: Task, transition: Transition) -> Task:
    assert task.op is not None
    task.loses_reply = transition.kind is Kind.LOST_REPLY
    task.state, world.last = State.RUN, task
    if task.due is None or not (task.shown or task.op.local):
        task.due = world.now
    task.shown |= not task.op.local
    task.dated = task.op.local and (task.dated or task.op.dated)
    task.unseen = task.op.local and not task.op.alone
    task.worker.changed |= task.op.changes
    polls = world.full and task.history.last is not None
    mark = world.polled() if polls else b""
    if task.leases is None:  # its round begins
        if task.vain_since is not None and task.seen != mark:
            virtual_clock.meets_news(world, task)
        task.leases, task.seen, task.refused_by = world.leases(), mark, ()
    task.own_step = polls and task.seen == mark
    enabled.may_look_again(task)
    if task.op.server:
        server = world.servers[task.op.server]
        server.before_step(task.op)
        server.tells_time |= task.op.timed
        if server.timed and (task.op.timed or task.op.dates):
            world.look()
    return task
