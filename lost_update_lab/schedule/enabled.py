"""The enabled transitions: which thread goes on, may time pass, which pauses begin or end, which faults may come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.commands import GOES_ON, HEARS, HEARS_LATER, LOOKS_AT_CLOCK, LOOKS_LATER, Op
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.model.workers import State, Task, WorkerProcess
from lost_update_lab.schedule import faults, virtual_clock
from lost_update_lab.schedule.world import World

#: what no clock shows
NEVER = -1
#: from so many tries in a row on a pause need not end after each of them
FEW_ATTEMPTS = 4


def transitions(world: World) -> list[Transition]:
    """All enabled transitions, quietest first: go on, let another worker go on, let time pass, and the faults."""
    given_up = virtual_clock.given_up(world)
    cancels = list(_cancels(given_up))
    if world.deadlock:
        return [*(Transition(Kind.VICTIM, task.name) for task in world.deadlock), *cancels]
    steppers = virtual_clock.ready(world)
    if any(task.op is GOES_ON for task in steppers):
        return _of_one_loop(steppers, given_up)
    later = _heard_later(steppers) + _looks_later(world, steppers)
    steppers = [task for task in steppers if task not in later]
    if dated := [task for task in steppers if task.dated]:  # to its EXEC: the server would ask its clock then
        return [Transition(Kind.STEP, dated[0].name), *cancels, *faults.transitions(world, dated[:1])]
    paused = [worker for worker in world.workers if worker.paused]
    ends_pause = paused and virtual_clock.only_polls(world)
    local = [task for task in steppers if _goes_first(world, task) and task not in given_up]
    if world.full and not ends_pause and local:
        return [Transition(Kind.STEP, local[0].name), *cancels]
    found = [*(Transition(Kind.STEP, task.name) for task in steppers), *cancels]
    end = virtual_clock.next_end(world)
    until = virtual_clock.or_aside(world, end)
    if until is not None:
        names = late(world, until)
        if not names:
            found += [Transition(Kind.TICK)] if end is not None else []
        elif _may_pause(world) and (lag := workers_to_pause(world, until, names)):
            world.applicable.add(Fault.PAUSE)
            if world.bounds.allow(faults.begun(world), Fault.PAUSE, len(lag)):
                found.append(Transition(Kind.PAUSE, "+".join(lag)))
    found += [Transition(Kind.RESUME, w.name) for w in paused if may_resume(world, w, not found)]
    if all(transition.cost for transition in found):  # a pause may also not come
        found = [*(Transition(Kind.STEP, task.name) for task in later), *found]
    found += faults.transitions(world, steppers)
    if found and all(transition.cost for transition in found):  # a fault may also not come
        found.insert(0, Transition(Kind.STOP))
    return found


def _may_pause(world: World) -> bool:
    """May a pause come, or is it only to be told that one could?"""
    if Fault.PAUSE in world.applicable:
        return world.bounds.allow(faults.begun(world), Fault.PAUSE)
    return Fault.PAUSE in world.bounds.kinds


def _goes_first(world: World, task: Task) -> bool:
    """Does it stand before a step that others cannot see, so that it may as well come now? Not if it makes a difference
    when that is: the server's clock, if some command asks for it, stands still in a transaction from its BEGIN on; and
    a serial order (serial.py) has to tell whose step it is. (The worker's own clock: Run.begin_to_look.)"""
    op = task.op
    if op is None or world.in_turns or not is_unseen(world, op):
        return False
    return not (op.server and _may_fail_over(world, op.server))


def _may_fail_over(world: World, name: str) -> bool:
    """Then it makes a difference whether a client has begun a MULTI: only one that has is cut off in the middle."""
    server, bounds = world.servers[name], world.bounds
    if not server.fails_over or server.lags:
        return server.fails_over
    return Fault.FAILOVER in bounds.kinds and bounds.allow(faults.begun(world), Fault.FAILOVER)


def is_unseen(world: World, op: Op) -> bool:
    """Can others neither see this step nor be seen by it, and tell no clock when it came?"""
    return op.local and not op.dated and not (op.dates and world.servers[op.server].timed)


def _cancels(tasks: Sequence[Task]) -> Iterator[Transition]:
    """The server learns what was given up: the command, or the BEGIN that its client has sent before it."""
    for task in tasks:
        yield Transition(Kind.CANCEL, task.name)
        if task.has_begun and task.state is State.READY:
            yield Transition(Kind.CANCEL, task.name, 1)


def _of_one_loop(steppers: Sequence[Task], given_up: Sequence[Task]) -> list[Transition]:
    """An event loop goes on, or something arrives first. What others do meanwhile may as well come before or after."""
    goes_on = next(task for task in steppers if task.op is GOES_ON)
    mine = [task for task in steppers if task.loop is goes_on.loop and task is not goes_on]
    arrives = [task for task in mine if task.op is HEARS or task.fresh]
    cancels = _cancels([task for task in given_up if task.loop is goes_on.loop and task.fresh])
    return [*(Transition(Kind.STEP, task.name) for task in (goes_on, *arrives)), *cancels]


def _heard_later(steppers: Sequence[Task]) -> list[Task]:
    """A reply that its coroutine did not hear at once: that it hears it later makes a difference only after another
    coroutine of its event loop has heard something."""
    for task in steppers:
        if task.op is HEARS and not task.fresh:
            task.op = HEARS_LATER
    return [task for task in steppers if task.op is HEARS_LATER]


def _looks_later(world: World, steppers: Sequence[Task]) -> list[Task]:
    """Those that did not look at their clock at once. That they do later makes a difference only when it shows another
    time then (somebody has looked meanwhile, or time has passed), or when another thread of theirs has gone on."""
    found = []
    for task in steppers:
        if task.op is LOOKS_AT_CLOCK or task.op is LOOKS_LATER:
            the_same = not task.fresh and task.stood_at == world.shown and not task.worker.offset
            task.op = LOOKS_LATER if the_same and world.full else LOOKS_AT_CLOCK
            found += [task] if task.op is LOOKS_LATER else []
    return found


def may_look_again(task: Task) -> None:
    """What this thread does now may be seen in the memory of its process. So for the other threads there that have put
    off their look, it makes a difference whether they look, and go on, before or after it."""
    for other in task.worker.tasks:
        if other is not task and (other.op is LOOKS_AT_CLOCK or other.op is LOOKS_LATER):
            other.stood_at = NEVER


def late(world: World, until: int) -> list[str]:
    """Workers that would act later than the slack allows if time moved on to `until`."""
    last = until - world.bounds.slack
    tardy = [task for task in world.tasks if task.shown and task.due is not None and task.due < last]
    due = virtual_clock.due_to_act(world) if tardy else ()
    return sorted({task.worker.name for task in tardy if task in due})


def workers_to_pause(world: World, until: int, names: list[str]) -> list[str]:
    """The workers that must be paused so that time can move on, at first to `until`, for which `names` are too late.
    Their own timers are paused with them, so the next timer may be later, and other workers too late for it. Empty if
    no timer is left then: no time would pass."""
    still: list[WorkerProcess] = []
    try:
        at: int | None = until
        while at is not None and names:
            still += map(world.worker, names)
            for worker in still:
                worker.paused = True
            at = virtual_clock.next_timer(world)
            names = [] if at is None else late(world, at)
        return sorted(worker.name for worker in still) if at is not None else []
    finally:
        for worker in still:
            worker.paused = False


def may_resume(world: World, worker: WorkerProcess, nothing_else: bool) -> bool:
    """A pause in which nothing happened is no pause. So it may end once others have changed something; or once time has
    passed and another worker is about to do something else than its polls (a read changes nothing, and yet matters).
    It is offered once at each time: a worker that goes on then may act before, between and after what the others do
    at that time.

    Others may do nothing but tries that each change something: a ticket, a count of tries that only grows. Then each
    try is news, and yet one is like the other: a pause may end after each of the first ones, after the 8th, the
    16th, … and as soon as anybody does something else."""
    if not worker.paused or not worker.tasks or worker.crashed:
        return False
    if not world.full:
        return True
    up_to_something = any(map(_is_up_to_something, virtual_clock.ready(world)))
    if not (up_to_something or nothing_else) and _between_tries(world):
        return virtual_clock.only_polls(world)
    moved = up_to_something or virtual_clock.is_over(world, worker)
    mark = world.shared(), world.now if moved else _offered_at(worker)
    news, worker.offered = worker.offered != mark, mark
    return news or nothing_else or virtual_clock.only_polls(world)


def _between_tries(world: World) -> bool:
    """Has nobody done anything for a while but repeat its try, and is none of their round numbers reached?"""
    mains = [each.main for each in world.workers if each.main.alive and not each.paused]
    made = [main.history.tries for main in mains]
    return bool(made) and min(made) >= FEW_ATTEMPTS and all(count & (count - 1) for count in made)


def _offered_at(worker: WorkerProcess) -> int:
    return worker.offered[1] if worker.offered else 0


def _is_up_to_something(task: Task) -> bool:
    """Does it stand before anything else than what it did in vain in its last round?"""
    polls = task.vain_since is not None or task.history.tries > 0
    return not (polls and task.op and task.history.goes_on_as_before(task.op.text))
