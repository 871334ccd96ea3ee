"""When are two moments the same? Exactly all that can influence what comes next makes a state.

It consists of: what the servers hold, and the time that their leases have left; what each thread has sent and was told
so far, with the values; what it stands before; every timer; which thread waits for which; the faults that were spent.
Left out: how the state was reached, and, of a worker that has ended, all but its outcome. Of one that goes on, also
what its ended threads were told counts: it may go by what they have left it. Earlier searches left out the rows that a
SELECT had returned, or what an ended thread was told, and were wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.digest import digest
from lost_update_lab.model.gaps import Gap
from lost_update_lab.model.server import Server
from lost_update_lab.model.system import ending_of, told_of
from lost_update_lab.model.workers import State, Task, WorkerProcess
from lost_update_lab.schedule import virtual_clock
from lost_update_lab.schedule.world import World


@dataclass(frozen=True, slots=True)
class Moment:
    """A state in its parts, each a digest: of every server, of every worker, and of what belongs to neither."""

    spent: tuple[Fault, ...]
    clock: int | None  # what a wall clock shows, if a worker has looked at one
    servers: Mapping[str, bytes]
    workers: Mapping[str, bytes]
    waiting: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def key(self) -> bytes:
        parts = repr((self.spent, self.clock, self.waiting, self.gaps)).encode()
        return digest(parts, *self.servers.values(), *self.workers.values())

    def changed(self, servers: Mapping[str, bytes], workers: Mapping[str, bytes], spent: Any) -> Moment:
        """The same moment with some parts replaced."""
        return replace(
            self, servers={**self.servers, **servers}, workers={**self.workers, **workers}, spent=spent
        )


def moment(world: World) -> Moment:
    """Return the state of the run, with times relative to now."""
    now = world.now

    def relative(at: int | None) -> int | None:
        return None if at is None else max(at - now, 0)

    return Moment(
        tuple(sorted(world.spent)),
        world.shown if world.wall_clock_read or world.distinct_times or _timed(world) else None,
        {server.name: _server(server, now) for server in world.servers.values()},
        {w.name: digest(repr(_worker(world, w, relative, now)).encode()) for w in world.workers},
        tuple(task.name for task in world.waiting_line),
        world.gaps,
    )


def _timed(world: World) -> bool:
    return any(server.timed or server.tells_time for server in world.servers.values())


def _server(server: Server, now: int) -> bytes:
    leases = sorted((key, end - now) for key, end in server.leases().items())
    if not leases and not server.lags and not server.hidden():
        return _plain(server.contents())
    return digest(server.contents(), server.hidden(), repr((server.lags, leases)).encode())


@lru_cache(maxsize=1 << 16)
def _plain(contents: bytes) -> bytes:
    """The contents of a server without leases, where nothing lags."""
    return digest(contents, b"", repr((False, [])).encode())


def shape(world: World) -> bytes:
    """Return the digest of the state without amounts of time: only the order of the timers counts.

    If a shape comes again on one path, nothing has happened in between but polls in vain and the passing of time.
    """
    leases = [(k, v) for s in world.servers.values() for k, v in s.leases().items()]
    times = {t.until for t in world.tasks if t.until is not None} | {v for _, v in leases}
    rank = {at: place for place, at in enumerate(sorted(times))}
    order = sorted((key, rank[at]) for key, at in leases)

    def ranked(at: int | None) -> int | None:
        return None if at is None else rank.get(at, -1)

    servers = [(server.lags, server.contents(), server.watched()) for server in world.servers.values()]
    workers = [_worker(world, worker, ranked, None) for worker in world.workers]
    waiting = [task.name for task in world.waiting_line]
    clock = world.now if _timed(world) else None  # then polls that follow each other are not told the same
    return digest(repr((sorted(world.spent), servers, workers, waiting, order, clock)).encode())


def _worker(world: World, worker: WorkerProcess, time: Any, now: int | None) -> tuple[Any, ...]:
    tasks = [_task(world, task, time, now) for task in worker.tasks if not task.goes_on_as_another]
    offered = worker.offered and (worker.offered[0], worker.offered[1] == world.now)
    told = worker.trying.told
    order = b"" if worker.finished else worker.order
    changed = bool(world.counted) and worker.changed and not worker.finished
    met = worker.met and not worker.finished
    outcome = _outcome(world, worker)
    return worker.paused, offered, worker.offset, worker.cuts, told, order, (changed, met), outcome, tasks


def _outcome(world: World, worker: WorkerProcess) -> tuple[Any, ...]:
    """What is left of a worker that has ended, however it ended: what is judged, and what stands in others' way."""
    if not worker.finished or worker.crashed:
        return worker.crashed, worker.struck
    left = [name for name, of in worker.sessions.items() if world.servers[name].holds(list(of))]
    return worker.main.state.value, told_of(ending_of(worker)), left


def _put_off(world: World, task: Task) -> bool:
    return task.until is not None and virtual_clock.wakes_at(world, task) != task.until


def _late(task: Task, now: int | None) -> int | bool | None:
    """How late it is. That counts for a task that may act. After a wait, or a pause, it is due from then on."""
    acts = task.state is State.READY or (task.canceling and not task.unheard)
    if now is None or not acts or task.worker.paused:
        return task.due is None
    return task.due and (now - task.due) * task.shown


def _task(world: World, task: Task, time: Any, now: int | None) -> tuple[Any, ...]:
    history = task.history
    told = history.key(now) if now is not None else history.done
    if not task.alive:
        return (task.state.value, () if task.worker.finished else told)
    return (
        task.state.value,
        task.op.identity if task.op else b"",
        _late(task, now),
        "dozes" if _put_off(world, task) else time(task.until),
        task.renews,
        task.canceling,
        task.notified,
        task.vain_since is not None,
        task.looks_again and task.seen != world.polled(),
        task.refused_by,
        told,
    )
