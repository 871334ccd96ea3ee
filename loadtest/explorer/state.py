"""When are two moments the same? All that can influence what comes next makes a state, exactly.

What the servers hold and what their leases have left; what each thread has sent and was told so far, with the
values; what it stands before; every timer; who waits for whom; the faults that are left. Left out: how the state
was reached, and of a thread that has ended all but its outcome. Two earlier searches left out the rows that a
SELECT had returned, and were wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadtest.explorer import timeline
from loadtest.explorer.tasks import Task, Worker, digest

if TYPE_CHECKING:
    from loadtest.explorer.run import Run


def state(run: Run) -> bytes:
    """Return the digest of the run's state, times relative to now."""
    now = run.now

    def moment(at: int | None) -> int | None:
        return None if at is None else max(at - now, 0)

    leases = [sorted((k, v - now) for k, v in s.leases().items()) for s in run.servers.values()]
    hidden = [server.hidden() for server in run.servers.values()]
    return digest(
        repr((_parts(run, moment, now), leases, hidden, now if run.wall_clock_read else 0)).encode()
    )


def shape(run: Run) -> bytes:
    """Return the digest of the state without amounts of time: only the order of the timers counts.

    A shape that comes again on one path: nothing has happened in between but polls in vain and time.
    """
    leases = [(k, v) for s in run.servers.values() for k, v in s.leases().items()]
    times = {t.until for t in run.tasks if t.until is not None} | {v for _, v in leases}
    rank = {at: place for place, at in enumerate(sorted(times))}
    order = sorted((key, rank[at]) for key, at in leases)
    return digest(
        repr((_parts(run, lambda at: None if at is None else rank.get(at, -1), None), order)).encode()
    )


def _parts(run: Run, moment: Any, now: int | None) -> tuple[Any, ...]:
    return (
        len(run.spent),
        [server.lags for server in run.servers.values()],
        [server.contents() for server in run.servers.values()],
        [
            (
                w.paused,
                w.offered,
                w.offset,
                _outcome(w),
                [_task(t, moment, now, _put_off(run, t)) for t in w.tasks],
            )
            for w in run.workers
        ],
        [task.name for task in run.waiting_line],
    )


def _outcome(worker: Worker) -> tuple[Any, ...]:
    """Of a worker that has ended only this is left to be judged, however it came there."""
    if not worker.finished or worker.crashed:
        return (worker.crashed,)
    result, error = worker.result, worker.error
    told = result if isinstance(result, str | int | None) else type(result).__name__
    return worker.main.state.value, told, type(error).__name__, str(error), worker.alone, worker.struck


def _put_off(run: Run, task: Task) -> bool:
    return task.until is not None and timeline.wakes_at(run, task) != task.until


def _task(task: Task, moment: Any, now: int | None, doze: bool) -> tuple[Any, ...]:
    history = task.history
    if not task.alive:
        return (task.state.value,)
    return (
        task.state.value,
        task.op.identity if task.op else b"",
        (task.due and now - task.due) if now is not None else task.due is None,
        "dozes" if doze else moment(task.until),
        task.notified,
        task.vain_since is not None,
        history.key(now) if now is not None else (history.base, tuple(history.round)),
    )
