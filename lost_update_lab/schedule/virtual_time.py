"""Virtual time: one line of timers for sleeps, time-outs and leases; who wakes when, and who only polls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lost_update_lab.model.digest import digest
from lost_update_lab.model.errors import NotTheSame
from lost_update_lab.model.workers import State, Task, Worker

if TYPE_CHECKING:
    from lost_update_lab.runs.run import Run

#: a thread that did the same so often, for as long as the patience, has no memory
FEWEST_TURNS = 10


def ready(run: Run) -> list[Task]:
    """Those who stand before a command and may go on; who went last comes first: no switch without a reason."""
    found = [t for t in run.tasks if t.state is State.READY and not t.worker.paused]
    return sorted(found, key=lambda task: task is not run.last)


def held_back(run: Run, poller: Worker) -> bool:
    """Does time stand (nearly) still because another worker is due? Polls count within that slack."""
    return any(t.worker is not poller and t.due is not None for t in ready(run))


def next_timer(run: Run) -> int | None:
    """When the next sleep, time-out or lease ends. The timers of a paused worker stand still with it."""
    times = [
        wakes_at(run, t)
        for t in run.tasks
        if t.until is not None and t.state in (State.WAIT, State.BLOCKED) and not t.worker.paused
    ]
    for server in run.servers.values():
        leases = server.leases()
        run.longest = max([run.longest, *(end - run.now for end in leases.values())])
        times += [] if run.leases_stand else leases.values()
    return min(times, default=None)


def wakes_at(run: Run, task: Task) -> int:
    """When a wait ends by itself. A poller in vain sleeps on, period by period, until there is something new. Not one
    whose polls renew a lease: it would end.

    Only when no other worker is due (within the slack every poll counts), and only for as long as polls of this
    kind were watched once, really executed, and did nothing else: a waiter that gives up, or goes in without the
    lock after its third try, has shown it then.
    """
    assert task.until is not None
    if not dozes(run, task):
        return task.until
    assert task.vain_since is not None
    missing = task.vain_since + run.watched.get(kind_of_poll(task), 0) - task.until
    return task.until + max(0, -(-missing // task.period)) * task.period


def dozes(run: Run, task: Task) -> bool:
    in_vain = task.vain_since is not None and task.period > 0 and task.state in (State.WAIT, State.BLOCKED)
    return in_vain and not task.renews and not held_back(run, task.worker)


def kind_of_poll(task: Task) -> bytes:
    return digest(task.worker.name.encode(), *(task.history.last or ()))


def watched_well(run: Run, task: Task) -> bool:
    """Was it watched polling like that, and doing nothing else, for as long as the patience, and as it does now?"""
    so_far = 0 if task.vain_since is None else run.now - task.vain_since
    return run.full and run.watched.get(kind_of_poll(task), 0) >= max(run.bounds.patience, so_far)


def known_by_its_turn(run: Run, task: Task) -> bool:
    """A thread beside the main one: was it watched doing nothing but such rounds for as long as the patience?"""
    turn = kind_of_turn(task, digest(*task.history.kind))
    return run.full and not task.main and run.watched.get(turn, 0) >= run.bounds.patience


def kind_of_turn(task: Task, kind: bytes) -> bytes:
    return digest(task.worker.name.encode(), b"turn", kind)


def watch(run: Run, task: Task) -> None:
    """It polled in vain until now: polls of this kind need not be watched for so long again. But not those that it
    slept through: whoever counts its tries has not made them."""
    if task.vain_since is not None and not task.dozed:
        kind = kind_of_poll(task)
        run.learned[kind] = max(run.learned.get(kind, 0), run.now - task.vain_since)
    history = task.history
    goes_on = not task.main and task.alive and not task.worker.paused and history.turns >= FEWEST_TURNS
    for kind in history.kinds if goes_on else ():
        turn = kind_of_turn(task, kind)
        run.learned[turn] = max(run.learned.get(turn, 0), run.now - history.steady_since)


def shared(run: Run) -> bytes:
    """What everybody could see now, as a digest, whatever time the leases have left."""
    return b"|".join(server.contents() for server in run.servers.values())


def leases(run: Run) -> dict[tuple[str, str], int]:
    """When each lease ends, by its server and its key."""
    return {
        (server.name, key): end for server in run.servers.values() for key, end in server.leases().items()
    }


def tick(run: Run) -> None:
    """Move time on to the next timer: leases end, sleepers wake."""
    if (until := next_timer(run)) is None:  # a path that is followed unseen
        raise NotTheSame("time was to pass, and there is no timer")
    run.now = max(run.now, until)
    for server in run.servers.values():
        if run.leases_stand:
            break
        for key in server.advance(run.now):
            run.progress()
            run.record("", server.name, "lease", key, "its lease is over")
    wake_the_due(run)


def wake_the_due(run: Run) -> None:
    for task in run.tasks:
        if task.until is None or task.worker.paused or not task.alive:
            continue
        due = wakes_at(run, task)
        task.dozed |= task.until <= run.now and task.until < due
        if due > run.now:
            continue
        if task.state is State.WAIT:
            run.wake(task, max(due, run.now - run.bounds.slack))
        elif task.state is State.BLOCKED:
            task.until = None
            task.expire()


def resume(run: Run, name: str) -> None:
    """A paused worker goes on: it is due from now on, and what it has slept through comes at once."""
    worker = run.worker(name)
    worker.paused, worker.offered = False, None
    run.progress()
    run.record(name, name, "resume", "goes on", "")
    for task in worker.tasks:
        task.history.begin_watch(run.now)
        if task.state is State.READY:
            task.due = run.now
    wake_the_due(run)


def abort(run: Run, task: Task) -> None:
    assert task.op is not None
    run.record(task.worker.name, task.name, "deadlock", task.op.text, "the server aborts it: deadlock")
    run.servers[task.op.server].abort(task)
    run.wake(task, run.now)
    run.deadlock = []


def look_who_is_free(run: Run) -> None:
    """Ask the servers whose commands are no longer blocked; wake pollers that have something new to see."""
    if run.waiting_line:
        for server in run.servers.values():
            mine = [t for t in run.waiting_line if t.op and t.op.server == server.name]
            for task in server.freed(mine) if mine else ():
                run.wake(task, run.now)
        if not any(task.state is State.RUN for task in run.tasks):
            run.deadlock = [t for s in run.servers.values() for t in s.deadlocked(run.waiting_line)]
    if not any(task.own_step or task.vain_since is not None for task in run.tasks):
        return
    mark = shared(run)
    for task in run.tasks:
        if task.own_step:
            task.seen, task.own_step = mark, False
        elif task.vain_since is None or task.worker.paused:
            continue
        elif task.seen != mark and task.state in (
            State.WAIT,
            State.BLOCKED,
        ):  # a poller's phase is arbitrary: it may look as soon as there is something new
            run.progress()
            watch(run, task)
            task.vain_since, task.dozed = None, False
            if task.state is State.WAIT:
                run.wake(task, run.now)
            elif task.until is not None:  # in the server: the time-out of its command comes
                task.until = run.now


def is_outside(worker: Worker) -> bool:
    """Has it ended, or not begun, or polls it in vain?"""
    main = worker.main
    return worker.finished or main.due is None or main.vain_since is not None


def only_polls(run: Run) -> bool:
    """Do all workers poll, or wait for ever, and was that so for longer than any lease and the patience? Or have
    they made so many attempts, each of which changed something, that they may go on for ever?"""
    mains = [w.main for w in run.workers if w.main.alive and not w.paused]
    if run.full and not all(_tries(main) for main in mains):  # the referee notes no polls in vain
        return False
    tried = max((main.history.changes for main in mains), default=0)
    waited = run.now - run.progress_at
    enough = tried >= run.bounds.attempts and waited > run.longest  # until then a lease may let them on
    if waited <= run.patience + run.longest and not enough:
        return False
    for task in run.tasks:
        watch(run, task)
    return True


def _tries(main: Task) -> bool:
    """Has it nothing else to do than what it did in vain? Who sleeps, or stands before something new, has."""
    endless = main.until is None and main.state in (State.BLOCKED, State.WAIT)
    return endless or main.vain_since is not None or main.history.attempts > 0
