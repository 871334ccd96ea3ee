"""What a worker does next, given all that it was told so far: learned from runs of its real code, and then known.

Between two gates a worker's code depends only on what it was told: by the servers, by its clocks, and by the threads
that woke it. (state.py relies on that too.) So the code need not run again for each of the thousands of schedules that
begin in the same way. The same bytes go to the same servers, and as long as the same answers come back, it is known
what the worker sends next. At the first answer that the worker was never given at that point, the schedule begins again
with the real code, and the recording grows.

A recording is a tree for each thread. Each node holds what the thread may be told there, and what it does then; that
may depend on where the other threads of its worker are in their trees. Three assumptions make the trees smaller. The
order in which the threads came to where they are does not matter. What a thread does after a look at its monotonic
clock depends on how long ago it looked before. And a waiter that polled in vain, and was watched doing nothing else, is
back where it was one round ago. None of these need be so. A waiter that counts its tries, draws the length of its
sleep, or makes a name of the time, does something different at what is taken for the same place. It is then recorded
without them (`merges`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from lost_update_lab.model.effects import CLOCKS, DISK, LOOK, NOBODY, NOTIFY
from lost_update_lab.model.errors import KeepsState, Unknown
from lost_update_lab.model.workers import Standing, Task, WorkerProcess
from lost_update_lab.schedule.pending import Seen
from lost_update_lab.schedule.world import World

_MONOTONIC = frozenset({LOOK})
#: effects that are noted only once between two gates
_ONCE = CLOCKS


class Event(Protocol):
    """What a thread stands before."""

    def same(self) -> Hashable:
        """Two events are equal if the results of this are."""

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        """Do it in place of the thread, and tell the task what the thread would be told (pending.hear)."""

    def stand(self, world: World, task: Task) -> None:
        """The same where no server is asked: the thread stands before it …"""

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        """… and now does it. Raises Unknown."""


class Segment(NamedTuple):
    """What a thread does from one gate to the next, and the event that it stands before then."""

    effects: tuple[tuple[Any, ...], ...]
    event: Event
    node: Node


#: what a thread is told, which of its worker's connections were cut off (a pool finds that out whatever the last reply
#: was), and where the worker's other threads are
Place = tuple[Hashable, tuple[str, ...], tuple["Node | None", ...]]


@dataclass(slots=True)
class Told:
    """What follows once a thread was told this. If it then looked at clocks (`clocks`), that depends on their times."""

    clocks: frozenset[str]
    ways: dict[Hashable, Segment] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Node:
    """A point in the life of a thread, and what it does from there. `did`: each thing that it was seen doing there,
    wherever the other threads were. Threads that were told the same and did the same are at the same point."""

    told: dict[Place, Told] = field(default_factory=dict)
    did: dict[Hashable, Segment] = field(default_factory=dict)


class Recording:
    """What is known of all workers of a system."""

    def __init__(self, merges: bool = True) -> None:
        self.merges = merges
        #: (worker, number of the thread) → the root of its tree
        self.roots: dict[tuple[int, int], Node] = {}
        #: what a thread has behind it, and what it is about to wait for → its node
        self.waits: dict[Hashable, Node] = {}
        #: why nothing can be replayed: something happened that only real code can do
        self.useless = ""
        #: workers touch files: where one of them runs its real code, all do
        self.alone = False
        #: `warm`: the clients are warm, so a worker that is told the same does the same; `settled`: in every schedule
        self.warm = self.settled = False
        #: (worker, command) → how its client reads the reply; None: sometimes one way, sometimes another
        self._readings: dict[tuple[int, bytes], Any] = {}
        #: (worker, server) → the connections that it used: first those of the last run, in the order of first use
        self._connections: dict[tuple[int, str], list[Any]] = {}

    @property
    def replays(self) -> bool:
        """Can some workers be replayed while others run their real code?"""
        return not self.useless and not self.alone

    def next(self, world: World, task: Task) -> Segment:
        """What the task does after it was told `task.heard`. Raises Unknown."""
        worker = task.worker
        told = self.node(task).told.get(_place(task))
        segment = told.ways.get(self.when(world, worker, told.clocks)) if told else None
        if segment is None:
            raise Unknown(worker.index)
        task.node = segment.node
        return segment

    def node(self, task: Task) -> Node:
        """The node at which the thread is."""
        if task.node is None:
            task.node = self.roots.setdefault((task.worker.index, task.number), Node())
        found: Node = task.node
        return found

    def when(self, world: World, worker: WorkerProcess, clocks: frozenset[str]) -> Hashable:
        """The times that these clocks show, as far as they matter."""
        if not clocks:
            return None
        if not self.merges:
            return world.shown, worker.offset
        looks = tuple(tuple([world.now - at for at in task.history.looks]) for task in worker.tasks)
        return looks if clocks == _MONOTONIC else (world.shown, worker.offset, looks)

    def rests(self, task: Task, guessed: bool) -> None:
        """The task is about to wait. If it waited for the same with the same behind it before, in whatever run, it is
        at that node again. `guessed`: its round was left out of its history, although it was not watched doing nothing
        else."""
        task.guesses += guessed
        if self.merges and task.op:
            worker, history = task.worker, task.history
            behind = history.base, worker.chance.draws, task.guesses, task.op.identity
            task.node = self.waits.setdefault((worker.index, task.number, *behind), task.node)

    def begin_again(self) -> None:
        """Forget the warm-up: a client that connects, or greets its server, does not do so again. A node that no later
        run passes before the search would keep it."""
        self.roots.clear()
        self.waits.clear()

    def read(self, worker: WorkerProcess, raw: bytes, how: Any) -> None:
        """The client has read the reply to this command."""
        key = worker.index, raw
        self._readings[key] = how if self._readings.get(key, how) == how else None

    def reading(self, worker: WorkerProcess, raw: bytes) -> Any:
        """How the client reads the reply to this command, wherever it sends it. Raises Unknown."""
        found = self._readings.get((worker.index, raw))
        if found is None:
            raise Unknown(worker.index)
        return found

    def connection(self, worker: WorkerProcess, server: str, free: Callable[[Any], bool]) -> Any:
        """The first free connection of this worker. Raises Unknown."""
        for connection in self._connections.get((worker.index, server), ()):
            if free(connection):
                return connection
        raise Unknown(worker.index)

    def keep_connections(self, worker: WorkerProcess) -> None:
        for server, used in worker.sessions.items():
            before = self._connections.get((worker.index, server), [])
            others = [connection for connection in before if connection not in used]
            del others[max(len(before) - len(used), 0) :]
            self._connections[worker.index, server] = [*used, *others]

    def let_go(self) -> None:
        """Nothing is replayed from now on. A connection that its client has dropped ends its session."""
        self._connections.clear()


class _Open(NamedTuple):
    """`relative`, `absolute`: the times that the clocks show."""

    task: Task
    place: Place
    relative: Hashable
    absolute: Hashable
    effects: list[tuple[Any, ...]]


class Recorder:
    """Listens while real code runs: what is each thread told, and what does it do then?"""

    def __init__(self, recording: Recording, world: World) -> None:
        self.recording, self.world = recording, world
        self._open: dict[WorkerProcess, _Open] = {}
        #: by id(): the name, and the object itself, which keeps the id in use
        self._keys: dict[WorkerProcess, dict[int, tuple[tuple[str, int, int], object]]] = {}
        self._named: dict[Task, int] = {}
        #: how many segments were new
        self.learned = 0
        #: how many effects came while a thread stood at a gate, where none are expected
        self.unnoted = 0

    def heard(self, task: Task) -> None:
        world, worker, when = self.world, task.worker, self.recording.when
        relative, absolute = (when(world, worker, clocks) for clocks in (_MONOTONIC, CLOCKS))
        self._open[worker] = _Open(task, _place(task), relative, absolute, [])

    def effect(self, task: Task, *effect: Any) -> None:
        """The task read a clock, drew a number, started a thread, or woke a waiting thread."""
        opened = self._open.get(task.worker)
        self.unnoted += opened is None
        if opened and (effect[0] not in _ONCE or effect not in opened.effects):
            opened.effects.append(effect)

    def notified(self, task: Task, key: object, count: int | None) -> None:
        if id(key) in self._keys.get(task.worker, ()):
            self.effect(task, NOTIFY, self.key(task, key), count)

    def key(self, task: Task, key: object) -> tuple[str, int, int]:
        """A name for what is waited for: the object differs in each run. It is named after its first waiting thread."""
        if key is NOBODY:
            return "nobody", 0, 0
        if isinstance(key, Task):
            return "task", key.number, 0
        keys = self._keys.setdefault(task.worker, {})
        if id(key) not in keys:
            place = self._named[task] = self._named.get(task, 0) + 1
            keys[id(key)] = ("key", task.number, place), key
        return keys[id(key)][0]

    def arrives(self, task: Task, event: Any) -> Any:
        """The thread stands before this event. Returns the equal event that was recorded first."""
        self._notes_the_disk(task)
        opened = self._open.pop(task.worker, None)
        if opened is None or opened.task is not task:
            self.opaque(f"{task.name} did something that no gate saw")
        if self.recording.useless or opened is None:
            return event
        clocks = CLOCKS.intersection(effect[0] for effect in opened.effects)
        node, place = self.recording.node(task), opened.place
        told = node.told.get(place)
        if told and told.clocks and clocks:
            clocks |= told.clocks  # what the first one shows may decide whether a second one is asked
            if told.clocks != clocks:
                told = node.told[place] = Told(clocks)
        elif told is None or (told.clocks != clocks and self._may_change(task)):
            told = node.told[place] = Told(clocks)
        at = (opened.relative if clocks == _MONOTONIC else opened.absolute) if clocks else None
        known, found = told.ways.get(at), Segment(tuple(opened.effects), event, Node())
        if known is None or (not _same(known, found) and self._may_change(task)):
            if self.recording.merges:
                did = place[:2], at, found.effects, type(event), event.same()
                found = node.did.setdefault(did, found)
            known = told.ways[at] = found
            self.learned += 1
        task.node = known.node
        return known.event

    def _notes_the_disk(self, task: Task) -> None:
        """What has the thread done to files in this turn?"""
        disk = self.world.disk
        if disk is None:
            return
        disk.turned((task.worker.index, task.number))
        if held := disk.done():
            if not isinstance(task.heard, Seen):
                self.opaque("it changes a file without having one open")
            self.effect(task, DISK, held)

    def _may_change(self, task: Task) -> bool:
        if self.recording.settled:
            self.world.error = KeepsState(task.name)
        elif self.recording.warm:
            self.recording.merges = False
        return True

    def opaque(self, why: str) -> None:
        self.recording.useless = self.recording.useless or why


def _place(task: Task) -> Place:
    others = tuple([other.node for other in task.worker.tasks if other is not task])
    return task.heard, task.worker.cuts, others


def _same(one: Segment, other: Segment) -> bool:
    return one.effects == other.effects and one.event.same() == other.event.same()
