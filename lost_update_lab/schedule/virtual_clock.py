"""Virtual time: one line of timers for sleeps, time-outs and leases; which thread wakes when, and which only polls."""

from __future__ import annotations

from collections.abc import Sequence

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.commands import Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.errors import NotTheSame
from lost_update_lab.model.gaps import AN_HOUR, Gap, Lease
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.model.workers import State, Task, WorkerProcess
from lost_update_lab.schedule import refusals
from lost_update_lab.schedule.world import World

#: a thread that did the same this often, for as long as the patience, has no memory
FEWEST_TURNS = 10


def ready(world: World) -> list[Task]:
    """Those that stand before a command and may go on. The one that went last comes first: no needless switch."""
    found = [t for t in world.tasks if t.state is State.READY and not t.worker.paused]
    return sorted(found, key=lambda task: task is not world.last)


def given_up(world: World) -> list[Task]:
    """Those whose client has given up the command that is under way, so that the server may learn of it now."""
    return [
        task for task in world.tasks if task.canceling and not task.worker.paused and _may_learn(world, task)
    ]


def _may_learn(world: World, task: Task) -> bool:
    """A command that Redis has not executed yet takes effect all the same."""
    if task.state is State.READY:
        return _asks_to_cancel(world, task)
    return task.state in (State.BLOCKED, State.WAIT)


def due_to_act(world: World) -> list[Task]:
    """Those that time must not pass by: that they come late is a fault. A server may never learn what a client gave up
    that did not wait for it."""
    waits = [task for task in given_up(world) if not (task.unheard and _asks_to_cancel(world, task))]
    return [*ready(world), *(task for task in waits if task.state is not State.READY)]


def _asks_to_cancel(world: World, task: Task) -> bool:
    return bool(task.op and task.op.server and world.servers[task.op.server].cancels)


def held_back(world: World, poller: WorkerProcess) -> bool:
    """Does time stand (nearly) still because another worker is due? Polls count within that slack."""
    return any(t.worker is not poller and t.due is not None for t in due_to_act(world))


def next_timer(world: World) -> int | None:
    """When the next sleep, time-out or lease ends. If nothing ends, and a clock is looked at, a pause has an end of its
    own (Bounds)."""
    return or_aside(world, next_end(world))


def next_end(world: World) -> int | None:
    """The timers of a paused worker stand still with it. Only those of an event loop may be over when it goes on: its
    command was under way for longer than its time-out."""
    return min(_ends(world), default=None)


def or_aside(world: World, end: int | None) -> int | None:
    if end is not None:
        return end
    aside = shows_time(world) and Fault.PAUSE in world.bounds.kinds and world.now < world.bounds.aside
    return world.bounds.aside if aside else None


def shows_time(world: World) -> bool:
    """Does a worker look at its wall clock, or a server at its own, as for rows that are too old?"""
    return world.looks or any(server.timed for server in world.servers.values())


def _ends(world: World) -> list[int]:
    times = [
        wakes_at(world, t)
        for t in world.tasks
        if t.until is not None
        and t.state in (State.WAIT, State.BLOCKED)
        and (not t.worker.paused or (_of_a_loop(t) and t.until > world.now))
    ]
    for server in world.servers.values():
        if leases := server.leases().values():
            world.longest = max(world.longest, max(leases) - world.now)
            times += [] if world.leases_stand else leases
    return times


def _of_a_loop(task: Task) -> bool:
    """Is it a timer, or a sleeping coroutine, of an event loop that has others?"""
    return task.loop is not None and task.state is State.WAIT


def is_over(world: World, worker: WorkerProcess) -> bool:
    """Will a timer of its event loop be over as soon as it goes on?"""
    return any(_of_a_loop(t) and t.until is not None and t.until <= world.now for t in worker.tasks)


def wakes_at(world: World, task: Task) -> int:
    """When a wait ends by itself. A thread that polls in vain sleeps on, period by period, until something is new.
    One whose polls renew a lease does not: the lease would end.

    It sleeps on only when no other worker is due (within the slack every poll counts), and only for as long as polls of
    this kind were watched once, really executed, and did nothing else. A waiter that gives up, or goes in without the
    lock after its third try, has shown it by then. A thread whose polls ask for the server's clock does not sleep on:
    what it is told changes by itself.
    """
    assert task.until is not None
    if not dozes(world, task):
        return task.until
    assert task.vain_since is not None
    missing = task.vain_since + world.watched.get(kind_of_poll(task), 0) - task.until
    return task.until + max(0, -(-missing // task.period)) * task.period


def dozes(world: World, task: Task) -> bool:
    """One whose poll is a wait in a server and one at home does so at home: there, it meets what is new just before it
    looks."""
    waits = (State.WAIT,) if task.history.in_two else (State.WAIT, State.BLOCKED)
    in_vain = task.vain_since is not None and task.period > 0 and task.state in waits
    awake = task.renews or task.by_clock or task.worker.order  # what it polls may be in its memory
    return in_vain and not awake and not held_back(world, task.worker)


def kind_of_poll(task: Task) -> bytes:
    return digest(task.worker.name.encode(), *task.history.poll)


def watched_well(world: World, task: Task) -> bool:
    """Was it watched polling as it does now, and doing nothing else, for as long as the patience?"""
    so_far = 0 if task.vain_since is None else world.now - task.vain_since
    return world.full and world.watched.get(kind_of_poll(task), 0) >= max(world.bounds.patience, so_far)


def is_watched(world: World, task: Task) -> bool:
    """Has it polled in vain for as long as the patience? One that stands still has not."""
    if task.vain_since is None or task.worker.paused:
        return False
    return world.now - task.vain_since >= world.bounds.patience


def _was_watched(world: World, task: Task) -> bool:
    """In an earlier run."""
    return world.watched.get(kind_of_poll(task), 0) >= world.bounds.patience


def is_another(task: Task, op: Op) -> bool:
    """Does a poller come to something else than what it did in vain?"""
    return task.vain_since is not None and not task.history.goes_on_as_before(op.text)


def gives_up(world: World, task: Task) -> None:
    """It does something else, though nothing is new: it has counted its tries. Polls by a clock, or of a thread beside
    the main one, show that otherwise. So do those that wait in a server: what ends their wait is told later."""
    counts = task.vain_since is not None and not (task.by_clock or task.beside or task.timer)
    if world.ending or not counts or task.history.in_two or any(task.history.in_server):
        return
    world.gave_up |= {kind_of_poll(task)}
    task.is_not_in_vain()
    world.progress()


def polls_on(world: World, transitions: Sequence[Transition]) -> int:
    """The transition by which polls in vain go on. Once they were watched for as long as the patience, they show
    nothing more: then the first one."""
    pollers = [t for t in world.tasks if t.vain_since is not None and t.alive and not t.worker.paused]
    if all(is_watched(world, task) or _was_watched(world, task) for task in pollers):
        for task in pollers:
            watch(world, task)
        return 0
    for place, each in enumerate(transitions):
        if each.kind is Kind.TICK or (each.kind is Kind.STEP and world.task(each.who).due is not None):
            return place
    return 0


def known_by_its_turn(world: World, task: Task) -> bool:
    """A thread beside the main one: was it watched doing nothing but such rounds for as long as the patience?"""
    turn = kind_of_turn(task, digest(*task.history.kind))
    return world.full and task.beside and world.watched.get(turn, 0) >= world.bounds.patience


def kind_of_turn(task: Task, kind: bytes) -> bytes:
    return digest(task.worker.name.encode(), b"turn", kind)


def watch(world: World, task: Task) -> None:
    """It has polled in vain until now, so polls of this kind need not be watched for that long again: if that was as
    long as the patience. A waiter that gives up after five tries has not shown so by its third. Nor has it made the
    polls that it slept through."""
    if is_watched(world, task) and task.vain_since is not None and not task.dozed:
        kind = kind_of_poll(task)
        world.learned[kind] = max(world.learned.get(kind, 0), world.now - task.vain_since)
    history = task.history
    goes_on = task.beside and task.alive and not task.worker.paused and history.turns >= FEWEST_TURNS
    for kind in history.kinds if goes_on else ():
        turn = kind_of_turn(task, kind)
        world.learned[turn] = max(world.learned.get(turn, 0), world.now - history.steady_since)


def tick(world: World) -> None:
    """Move time on to the next timer: leases end, sleepers wake."""
    if (until := next_timer(world)) is None:  # the path that is followed does not fit this run
        raise NotTheSame("time was to pass, and there is no timer")
    nothing_ends = bool(world.counted) and next_end(world) is None
    over = pass_to(world, max(world.now, until))
    _note_gaps(world, [AN_HOUR] if nothing_ends else over)


def pass_to(world: World, now: int) -> list[Lease]:
    """Time is `now`: leases end, sleepers wake. Returns the leases that are over."""
    world.now, over = now, list[Lease]()
    for server in world.servers.values():
        if world.leases_stand:
            break
        for key in server.advance(world.shown):
            over.append((server.name, key))
            world.progress()
            world.record("", server.name, "lease", key, "its lease is over")
    wake_the_due(world)
    return over


def _note_gaps(world: World, over: Sequence[Lease]) -> None:
    """Do these leases end between two operations? Not if some worker has changed something, and is not done."""
    found = [lease for lease in over if lease in world.counted]
    under_way = [worker for worker in world.workers if any(task.alive for task in worker.tasks)]
    if found and not any(worker.changed for worker in under_way):
        ended = tuple(worker.index for worker in world.workers if worker not in under_way)
        world.gaps = tuple(sorted({*world.gaps, *(Gap(lease, ended) for lease in found)}))


def wake_the_due(world: World) -> None:
    for task in world.tasks:
        if task.until is None or task.worker.paused or not task.alive:
            continue
        due = wakes_at(world, task)
        task.dozed |= task.until <= world.now and task.until < due
        if due > world.now:
            continue
        if task.state is State.WAIT:
            world.wake(task, max(due, world.now - world.bounds.slack))
        elif task.state is State.BLOCKED:
            task.until = None
            task.expire(world, task)


def resume(world: World, name: str) -> None:
    """A paused worker goes on. It is due from now on, and what it has slept through comes at once."""
    worker = world.worker(name)
    worker.paused, worker.offered = False, None
    world.progress()
    world.record(name, name, "resume", "goes on", "")
    for task in worker.tasks:
        task.history.begin_watch(world.now)
        if task.state is State.READY:
            task.due = world.now
    wake_the_due(world)


def abort(world: World, task: Task) -> None:
    assert task.op is not None
    world.record(task.worker.name, task.name, "deadlock", task.op.text, "the server aborts it: deadlock")
    world.servers[task.op.server].abort(task)
    world.wake(task, world.now)
    world.deadlock = []


def cancel(world: World, task: Task) -> None:
    """The server learns that this command, which waits, was given up."""
    task.is_canceled()
    if task.state is State.BLOCKED:
        assert task.op is not None
        world.servers[task.op.server].stop(task.session)
    world.wake(task, world.now)
    world.deadlock = []


def notice_unblocked(world: World) -> None:
    """Ask the servers whose commands are no longer blocked. Wake pollers that have something new to see."""
    if world.waiting_line:
        for name, server in world.servers.items():
            waiting = _waiting_at(world, name)
            for task in server.freed(waiting) if waiting else ():
                world.wake(task, world.now)
        if not any(task.state is State.RUN for task in world.tasks):
            of = world.servers.items()
            world.deadlock = [t for name, each in of for t in each.deadlocked(_waiting_at(world, name))]
    if not any(task.own_step or task.vain_since is not None for task in world.tasks):
        return
    mark = world.polled()
    for task in world.tasks:
        if task.own_step:
            task.seen, task.own_step = mark, False
        if task.vain_since is None or task.worker.paused or task.state not in (State.WAIT, State.BLOCKED):
            continue
        if task.seen != mark or refusals.are_over(world, task):
            # the phase of a poll is arbitrary: it may look as soon as there is something new
            meets_news(world, task)
            if task.state is State.WAIT:
                world.wake(task, world.now)
            elif task.until is not None:  # in the server: the time-out of its command comes
                task.until = world.now


def _waiting_at(world: World, server: str) -> list[Task]:
    return [task for task in world.waiting_line if task.op and task.op.server == server]


def meets_news(world: World, task: Task) -> None:
    """It has polled in vain until now, and what it may see next is new."""
    world.progress()
    watch(world, task)
    task.is_not_in_vain()
    task.refused_by = ()


def is_outside(worker: WorkerProcess) -> bool:
    """Has it ended, or not begun, or does it poll in vain?"""
    main = worker.main
    if worker.finished or main.due is None or main.vain_since is not None:
        return True
    polls = [task.vain_since is not None for task in worker.tasks if task.coroutine and task.alive]
    return bool(polls) and all(polls)


def only_polls(world: World) -> bool:
    """Have all workers polled, or waited for ever, for longer than any lease and the patience? Or have they made so
    many tries, each of which changed something, that they may go on for ever?"""
    mains = [task for w in world.workers if not w.paused for task in _heard(w)]
    if world.full and not all(_tries(main) for main in mains):  # the referee notes no polls in vain
        return False
    tried = max((main.history.changes for main in mains), default=0)
    waited = world.now - world.progress_at
    enough = tried >= world.bounds.tries and waited > world.longest  # until then a lease may free them
    if waited <= world.patience + world.longest and not enough:
        return False
    for task in world.tasks:
        watch(world, task)
    return True


def polls_in_vain(world: World, worker: WorkerProcess) -> bool:
    """Has this worker polled for longer than any lease and the patience, and nothing came? It waits for another one."""
    waited = world.now - world.progress_at
    polls = [task.vain_since is not None for task in _heard(worker)]
    return waited > world.patience + world.longest and bool(polls) and all(polls)


def _heard(worker: WorkerProcess) -> list[Task]:
    """Its main thread, and what goes with it. What was sent and waits in a server when its client has given up is none:
    each try of a poll may leave such a one. Nor is a timer of its event loop: once all of them have come that there
    were, and nothing else has happened, others will come in the same way."""
    left = [task for task in worker.line if task.timer or (task.unheard and task.state is State.BLOCKED)]
    return [task for task in worker.line if task.alive and task not in left]


def _tries(main: Task) -> bool:
    """Does it do nothing but repeat what it did in vain? Not if it sleeps or stands before something new."""
    for_ever = main.until is None and main.state in (State.BLOCKED, State.WAIT)
    return for_ever or main.vain_since is not None or main.history.tries > 0
