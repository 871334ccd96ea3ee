"""What a worker does next, given all that it was told so far: learned from runs of its real code, and then known.

Between two gates a worker's code depends on nothing but what it was told: by the servers, by its clocks, by those who
woke it. (state.py relies on that too.) So it need not be computed again for each of the thousands of schedules that
begin in the same way: the same bytes go to the same servers, and as long as the same answers come back, it is known
what the worker sends then. At the first answer that it has never been given there, the schedule begins again with its
real code, and the recording grows.

A recording is a tree for each worker: at each node, what each of its threads may be told, and what it does then. Two
things make it smaller. What a thread does after a look at its monotonic clock goes by how long ago it looked before.
And a waiter that polled in vain, and was watched doing nothing else, is back where it was a round ago. Neither must be
so: who counts its tries, draws how long it sleeps, or makes a name of the time, does something else at what is the same
place then, and is recorded without (`merges`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from loadtest.explorer.endless import NotTheSame
from loadtest.explorer.playing import CLOCKS, LOOK, NOBODY, NOTIFY, Event, Unknown
from loadtest.explorer.tasks import Task, Worker

if TYPE_CHECKING:
    from loadtest.explorer.run import Run

_MONOTONIC = frozenset({LOOK})
#: what is noted once between two gates
_ONCE = CLOCKS


class Segment(NamedTuple):
    """What a thread does from one gate to the next, and what it stands before then."""

    effects: tuple[tuple[Any, ...], ...]
    event: Event
    node: Node


@dataclass(slots=True)
class Told:
    """What follows when a thread was told this. If it then looked at a clock (`clocks`): by what they showed."""

    clocks: frozenset[str]
    ways: dict[Hashable, Segment] = field(default_factory=dict)


@dataclass(slots=True)
class Node:
    """A point in the life of a worker. By the number of the thread, what it is told, and which of its connections
    were cut off (a pool finds that out, whatever the last reply was): what it does."""

    told: dict[tuple[int, Hashable, tuple[str, ...]], Told] = field(default_factory=dict)


class Recording:
    """Of all workers of a subject."""

    def __init__(self, workers: int, merges: bool = True) -> None:
        self.merges = merges
        self.roots = [Node() for _ in range(workers)]
        #: why nothing can be played: something was met that only real code can do
        self.useless = ""
        #: the clients are warm, and from now on who is told the same does the same: `settled`, in every schedule
        self.warm = self.settled = False
        #: (worker, command) → how its client reads the reply; None: now so, now so
        self._readings: dict[tuple[int, bytes], Any] = {}
        #: (worker, server) → the connections that it used last, in the order of their first use
        self._connections: dict[tuple[int, str], list[Any]] = {}

    def next(self, run: Run, task: Task) -> Segment:
        """What the task does, having been told `task.heard`. Raises Unknown."""
        worker = task.worker
        told: Told | None = worker.node.told.get((worker.tasks.index(task), task.heard, worker.cuts))
        segment = told.ways.get(self.when(run.now, worker, told.clocks)) if told else None
        if segment is None:
            raise Unknown(worker.index)
        self.moved(task, segment.node)
        return segment

    def when(self, now: int, worker: Worker, clocks: frozenset[str]) -> Hashable:
        """What these clocks show, as far as it matters."""
        if not clocks:
            return None
        if self.merges and clocks == _MONOTONIC:
            return tuple(tuple([now - at for at in task.history.looks]) for task in worker.tasks)
        return now, worker.offset

    def moved(self, task: Task, node: Node) -> None:
        task.worker.node = node
        task.worker.turns += 1
        task.turns += 1

    def rests(self, task: Task, again: bool) -> None:
        """It is about to wait. `again`: it was watched doing nothing else than what it did since it waited last. If no
        other thread had its turn meanwhile, and no number was drawn, it is back where it was."""
        worker = task.worker
        meanwhile = worker.turns - task.turns, worker.chance.draws
        if again and self.merges and task.rested and task.rested[1] == meanwhile:
            worker.node = task.rested[0]
        task.rested = worker.node, meanwhile

    def begin_anew(self) -> None:
        """What was seen until now was done by cold clients: one that connects, or greets its server, does not do so
        again. A place that no later run has passed before the search would keep it."""
        self.roots = [Node() for _ in self.roots]

    def read(self, worker: Worker, raw: bytes, how: Any) -> None:
        """The client has read the reply to this command."""
        key = worker.index, raw
        self._readings[key] = how if self._readings.get(key, how) == how else None

    def reading(self, worker: Worker, raw: bytes) -> Any:
        """How the client reads the reply to this command, wherever it sends it. Raises Unknown."""
        found = self._readings.get((worker.index, raw))
        if found is None:
            raise Unknown(worker.index)
        return found

    def connection(self, worker: Worker, server: str, number: int) -> Any:
        """The connection that this worker uses as its first, second … one. Raises Unknown."""
        found = self._connections.get((worker.index, server), ())
        if number >= len(found):
            raise Unknown(worker.index)
        return found[number]

    def keep_connections(self, worker: Worker) -> None:
        for server, used in worker.sessions.items():
            before = self._connections.get((worker.index, server), [])
            others = [connection for connection in before[len(used) :] if connection not in used]
            self._connections[worker.index, server] = [*used, *others]


class _Open(NamedTuple):
    """`relative`, `absolute`: what clocks show."""

    task: Task
    heard: Hashable
    relative: Hashable
    absolute: Hashable
    effects: list[tuple[Any, ...]]


class Recorder:
    """Listens while real code runs: what is each thread told, and what does it do then?"""

    def __init__(self, recording: Recording, run: Run) -> None:
        self.recording, self.run = recording, run
        self._open: dict[Worker, _Open] = {}
        self._keys: dict[
            Worker, dict[int, tuple[int, object]]
        ] = {}  # by id(); the object, so that it keeps its id

    def heard(self, task: Task) -> None:
        worker, when = task.worker, self.recording.when
        relative, absolute = (when(self.run.now, worker, clocks) for clocks in (_MONOTONIC, CLOCKS))
        self._open[worker] = _Open(task, task.heard, relative, absolute, [])

    def effect(self, task: Task, *effect: Any) -> None:
        """It read a clock, drew a number, started a thread, or woke somebody."""
        opened = self._open.get(task.worker)
        if opened and (effect[0] not in _ONCE or effect not in opened.effects):
            opened.effects.append(effect)

    def notified(self, task: Task, key: object, count: int | None, woken: list[Task]) -> None:
        if any(each.worker is not task.worker for each in woken):
            self.opaque("a worker woke another one inside of this process")
        if id(key) in self._keys.get(task.worker, ()):
            self.effect(task, NOTIFY, self.key(task, key), count)

    def key(self, task: Task, key: object) -> tuple[str, int]:
        """A name for what is waited for: it is another object in each run."""
        if key is NOBODY:
            return "nobody", 0
        if isinstance(key, Task):
            return "task", task.worker.tasks.index(key)
        keys = self._keys.setdefault(task.worker, {})
        return "key", keys.setdefault(id(key), (len(keys), key))[0]

    def arrives(self, task: Task, event: Any) -> Any:
        """The thread stands before this. → the same event as it was recorded first"""
        worker, opened = task.worker, self._open.pop(task.worker, None)
        if opened is None or opened.task is not task:
            self.opaque(f"{task.name} did something that no gate saw")
        if self.recording.useless or opened is None:
            return event
        clocks = CLOCKS.intersection(effect[0] for effect in opened.effects)
        place = worker.tasks.index(task), opened.heard, worker.cuts
        told = worker.node.told.get(place)
        if told is None or (told.clocks != clocks and self._may_change(task)):
            told = worker.node.told[place] = Told(clocks)
        at = (opened.relative if clocks == _MONOTONIC else opened.absolute) if clocks else None
        known, found = told.ways.get(at), Segment(tuple(opened.effects), event, Node())
        if known is None or (not _same(known, found) and self._may_change(task)):
            known = told.ways[at] = found
        self.recording.moved(task, known.node)
        return known.event

    def _may_change(self, task: Task) -> bool:
        if self.recording.settled:
            self.run.error = NotTheSame(f"{task.name} was told the same as before, and does something else")
        elif self.recording.warm:
            self.recording.merges = False
        return True

    def opaque(self, why: str) -> None:
        self.recording.useless = self.recording.useless or why


def _same(one: Segment, other: Segment) -> bool:
    return one.effects == other.effects and one.event.same() == other.event.same()
