"""What a worker does next, given all that it was told so far: learned from runs of its real code, and then known.

Between two gates a worker's code depends on nothing but what it was told: by the servers, by its clocks, by those who
woke it. (state.py relies on that too.) So it need not be computed again for each of the thousands of schedules that
begin in the same way: the same bytes go to the same servers, and as long as the same answers come back, it is known
what the worker sends then. At the first answer that it has never been given there, the schedule begins again with its
real code, and the recording grows.

A recording is a tree for each worker: at each node, what each of its threads may be told, and what it does then.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from loadtest.explorer.endless import Broken
from loadtest.explorer.playing import CLOCKS, NOTIFY, Event, Unknown
from loadtest.explorer.tasks import Task, Worker

if TYPE_CHECKING:
    from loadtest.explorer.run import Run


class Segment(NamedTuple):
    """What a thread does from one gate to the next, and what it stands before then."""

    effects: tuple[tuple[Any, ...], ...]
    event: Event
    node: Node


@dataclass(slots=True)
class Told:
    """What follows when a thread was told this. If it then looked at a clock: by what the clocks showed."""

    timed: bool
    ways: dict[tuple[int, int] | None, Segment] = field(default_factory=dict)


@dataclass(slots=True)
class Node:
    """A point in the life of a worker. By the number of the thread, what it is told, and which of its connections
    were cut off (a pool finds that out, whatever the last reply was): what it does."""

    told: dict[tuple[int, Hashable, tuple[str, ...]], Told] = field(default_factory=dict)


class Recording:
    """Of all workers of a subject."""

    def __init__(self, workers: int) -> None:
        self.roots = [Node() for _ in range(workers)]
        #: why nothing can be played: something was met that only real code can do
        self.useless = ""
        #: the clients are warm: from now on who is told the same does the same
        self.settled = False
        #: (worker, command) → how its client reads the reply; None: now so, now so
        self._readings: dict[tuple[int, bytes], Any] = {}
        #: (worker, server) → the connections that it used last, in the order of their first use
        self._connections: dict[tuple[int, str], list[Any]] = {}

    def next(self, run: Run, task: Task) -> Segment:
        """What the task does, having been told `task.heard`. Raises Unknown."""
        worker = task.worker
        told: Told | None = worker.node.told.get((worker.tasks.index(task), task.heard, worker.cuts))
        segment = told.ways.get((run.now, worker.offset) if told.timed else None) if told else None
        if segment is None:
            raise Unknown(worker.index)
        worker.node = segment.node
        return segment

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
    task: Task
    heard: Hashable
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
        self._open[task.worker] = _Open(task, task.heard, [])

    def effect(self, task: Task, *effect: Any) -> None:
        """It read a clock, started a thread, or woke somebody."""
        opened = self._open.get(task.worker)
        if opened and (effect[0] not in CLOCKS or effect not in opened.effects):
            opened.effects.append(effect)

    def notified(self, task: Task, key: object, count: int | None, woken: list[Task]) -> None:
        if any(each.worker is not task.worker for each in woken):
            self.opaque("a worker woke another one inside of this process")
        if id(key) in self._keys.get(task.worker, ()):
            self.effect(task, NOTIFY, self.key(task, key), count)

    def key(self, task: Task, key: object) -> tuple[str, int]:
        """A name for what is waited for: it is another object in each run."""
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
        timed = any(effect[0] in CLOCKS for effect in opened.effects)
        place = worker.tasks.index(task), opened.heard, worker.cuts
        told = worker.node.told.get(place)
        if told is None or (told.timed != timed and self._may_change(task)):
            told = worker.node.told[place] = Told(timed)
        at = (self.run.now, worker.offset) if timed else None
        known, found = told.ways.get(at), Segment(tuple(opened.effects), event, Node())
        if known is None or (not _same(known, found) and self._may_change(task)):
            known = told.ways[at] = found
        worker.node = known.node
        return known.event

    def _may_change(self, task: Task) -> bool:
        if self.recording.settled:
            self.run.error = Broken(
                f"not repeatable: {task.name} was told the same as before, and does something else. "
                "Something outside the gates decides"
            )
        return True

    def opaque(self, why: str) -> None:
        self.recording.useless = self.recording.useless or why


def _same(one: Segment, other: Segment) -> bool:
    return one.effects == other.effects and one.event.same() == other.event.same()
