"""Who goes on? The next decision of a schedule is found, taken, and done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lost_update_lab.model.errors import still_bounded
from lost_update_lab.model.transitions import FREE, STEPS, Kind, Option
from lost_update_lab.model.workers import State, Task
from lost_update_lab.schedule import enabled, faults, virtual_time

if TYPE_CHECKING:
    from lost_update_lab.runs.run import Run

#: what a chooser answers to cut a run short
CUT = -1


def next_task(run: Run) -> Task | None:
    """Whose turn it is. None: the run is over."""
    while True:
        if run.error:
            raise run.error
        virtual_time.look_who_is_free(run)
        for task in run.tasks:
            if task.state is State.RUN:
                return task
        if all(worker.finished for worker in run.workers):
            return None
        option = _decide(run)
        if option is None:
            return None
        if task_or_none := apply(run, option):
            return task_or_none


def _decide(run: Run) -> Option | None:
    """What comes next. None: the run is over."""
    run.decisions += 1
    still_bounded(run)
    if run.decisions <= run.beaten:
        return run.follow(run)
    options = enabled.options(run)
    if not options:
        run.stuck = True
        return None
    pick = run.choose(run, options)
    run.cut = pick == CUT
    return None if run.cut or run.stuck else options[pick]  # stuck: enough polls in vain were seen


def apply(run: Run, option: Option) -> Task | None:
    """Do it. → whose turn it is then, if that follows"""
    op = run.task(option.who).op if option.kind is Kind.STEP else None
    run.touched.update({op.server} - {""} if op else run.servers)
    if option.kind not in FREE:
        faults.apply(run, option)
    if option.kind is Kind.TICK or option.kind is Kind.PAUSE:
        virtual_time.tick(run)
    elif option.kind is Kind.RESUME:
        virtual_time.resume(run, option.who)
    elif option.kind is Kind.VICTIM:
        virtual_time.abort(run, run.task(option.who))
    elif option.kind is Kind.FAILOVER:
        faults.fail_over(run, option.who)
    elif option.kind in STEPS:
        return _step(run, run.task(option.who), option)
    return None


def _step(run: Run, task: Task, option: Option) -> Task:
    assert task.op is not None
    task.loses_reply = option.kind is Kind.LOST_REPLY
    task.state, run.last = State.RUN, task
    if task.due is None:
        task.due = run.now
    polls = run.full and task.history.last is not None
    mark = virtual_time.shared(run) if polls else b""
    if task.leases is None:  # its round begins
        task.leases, task.seen = virtual_time.leases(run), mark
    task.own_step = polls and task.seen == mark
    if task.op.server:
        run.servers[task.op.server].before_step(task.op)
    return task
