"""What is true now in a schedule: workers, time, servers, the faults that were spent. No thread, no search.

The rules that change it stand beside it in this folder, each a function of a `World`. An executed run (runs/run.py,
with real threads) and an in-memory run (runs/in_memory_run.py) both go on from a `World`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Protocol

from lost_update_lab.model.bounds import Bounds, Fault, Reduction
from lost_update_lab.model.chance import Drawn
from lost_update_lab.model.commands import Op, Step
from lost_update_lab.model.disk import FILES
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.gaps import Gap, Lease
from lost_update_lab.model.server import Server
from lost_update_lab.model.system import Ending
from lost_update_lab.model.transitions import Transition
from lost_update_lab.model.workers import State, Task, WorkerProcess


class Listener(Protocol):
    """Hears what a thread is told while its real code runs (memo/recording.py)."""

    unnoted: int

    def heard(self, task: Task) -> None: ...


class Places(Protocol):
    """Knows how far each thread is in what it does (memo/recording.py)."""

    def rests(self, task: Task, guessed: bool) -> None: ...


@dataclass(eq=False)
class World:
    """The state of one schedule. Times are in µs of virtual time."""

    workers: Sequence[WorkerProcess]
    servers: dict[str, Server]
    bounds: Bounds
    choose: Chooser

    # -- time
    now: int = 0
    #: when something last happened that was no poll in vain
    progress_at: int = 0
    #: the longest lease or wait, as far as is known
    longest: int = 0
    #: how much longer polls in vain are watched
    patience: int = field(init=False)
    #: a calibration of the waiters is under way (poll_calibration.py): no lease ends
    leases_stand: bool = False
    #: a worker has read its wall clock; noted in the runs before the search
    wall_clock_read: bool = False
    looks: bool = False
    #: no two looks at a clock are shown the same time (ties.py); the last that one was shown
    distinct_times: bool = False
    looked: int = -1
    #: how often each thread has looked at its wall clock
    looks_of: Counter[str] = field(default_factory=Counter)
    #: the leases of which it counts whether they end between two operations (serial.py); those that did
    counted: Collection[Lease] = ()
    gaps: tuple[Gap, ...] = ()

    # -- where the workers are
    #: the task that went last
    last: Task | None = None
    #: tasks that are blocked in a server, in the order in which they came
    waiting_line: list[Task] = field(default_factory=list)
    deadlock: list[Task] = field(default_factory=list)
    #: a server that ends deadlocks by itself has ended one
    ended_deadlock: bool = False
    #: this is a serial order: one worker after the other
    in_turns: bool = False

    # -- faults
    spent: list[Fault] = field(default_factory=list)
    #: servers whose failover is among them (faults.charge)
    charged: set[str] = field(default_factory=set)
    #: servers on which something has happened since faults were last offered
    touched: set[str] = field(init=False)
    applicable: set[Fault] = field(default_factory=set)

    # -- polls: for how long each kind in vain was watched in earlier runs (virtual_clock.wakes_at), and in this one.
    #: The chooser exchanges it, so that a path is repeated as it was first walked
    watched: dict[bytes, int] = field(default_factory=dict)
    learned: dict[bytes, int] = field(default_factory=dict)
    #: the kinds of poll whose waiters are known to give up; those that have, in this run, though nothing was new
    counting: frozenset[bytes] = frozenset()
    gave_up: frozenset[bytes] = frozenset()
    #: a poll in vain was merged with the one before
    collapsed: bool = False
    #: … while no other worker was due: from then on not every poll branches
    beyond: bool = False

    # -- how far it is, and how it ended
    decisions: int = 0
    #: when the search has to end, on time.perf_counter
    until: float = inf
    stuck: bool = False
    cut: bool = False
    ending: bool = False
    error: BaseException | None = None
    endings: list[Ending] = field(default_factory=list)
    #: a server was told something that it keeps, so the next run will differ
    warming_up: bool = False
    #: where a worker has drawn one of few, and then did something (random_choice.py)
    random_choice: str = ""
    #: which client went around the gates
    bypassed: str = ""

    # -- who reads it
    steps: list[Step] = field(default_factory=list)
    #: the commands that were answered, with their replies, if somebody follows
    commands: list[tuple[Op, str]] = field(default_factory=list)
    trace: Callable[[World, Step], None] | None = None
    #: what is known of the workers
    recording: Places | None = None
    #: listens while real code runs
    recorder: Listener | None = None
    #: real code is told what is known of the servers, and none of them is asked (runs/fed_run.py)
    fed: ClassVar[bool] = False
    #: the servers' answers are noted, to be known from then on (in_memory_run.py)
    learns: bool = False
    #: by whom, and in which function, a name was drawn that every process keeps for itself (cached_names.py)
    cached_names: dict[Drawn, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.full = self.bounds.reduction is Reduction.FULL
        self.patience, self.touched = self.bounds.patience, set(self.servers)
        self._keys: dict[tuple[int, Hashable], object] = {}  # by the number of the worker
        self.know_tasks()

    @property
    def at_gates(self) -> Mapping[str, Server]:
        """The servers as the gates know them, by name: the real ones, also where others answer (runs/fed_run.py)."""
        return self.servers

    def prescribed(self) -> Transition | None:
        """What is taken next, whatever else could be (runs/fed_run.py). None: what can be is found, and chosen from."""
        return None

    # -- which workers there are ----------------------------------------------------------------------------------

    def know_tasks(self) -> None:
        self.tasks = [task for worker in self.workers for task in worker.tasks]
        self._named = {task.name: task for task in self.tasks}

    def task(self, name: str) -> Task:
        return self._named[name]

    @property
    def shown(self) -> int:
        """What a wall clock shows to a worker that looks at it now."""
        return max(self.now, self.looked + 1) if self.distinct_times else self.now

    def look(self, task: Task | None = None) -> int:
        """A worker's thread, or a server, looks at its wall clock. Returns what it shows. The servers' clocks show no
        less from then on."""
        self.looked = shows = self.shown
        if task:
            self.looks_of[task.name] += 1
        if self.distinct_times:
            for server in self.servers.values():
                if server.timed:
                    server.advance(shows)
        shows += task.worker.offset if task else 0
        if self.distinct_times and task:
            self.record(task.worker.name, task.name, "look", "looks at its clock", Epoch.time_of_day(shows))
        return shows

    @property
    def names(self) -> Collection[str]:
        """The names of all tasks."""
        return self._named

    def worker(self, name: str) -> WorkerProcess:
        return next(worker for worker in self.workers if worker.name == name)

    def new_thread(self, worker: WorkerProcess, kind: str = "") -> Task:
        """`kind`: a letter before its number; "": a thread."""
        task = Task(f"{worker.name}.{kind}{len(worker.tasks)}", worker, main=False, due=self.now, shown=True)
        worker.tasks.append(task)
        self.know_tasks()
        return task

    def key(self, worker: WorkerProcess, name: tuple[str, int, int]) -> object:
        """The object that a recorded name stands for in this run."""
        if name[0] == "task":
            return worker.tasks[name[1]]
        return self._keys.setdefault((worker.index, name), object())

    @property
    def disk(self) -> Any:
        """The disk that the workers share, if they are processes of one machine."""
        return self.servers.get(FILES)

    @property
    def is_left_in_deadlock(self) -> bool:
        """Nobody wants to know what follows (Bounds.deadlocks)."""
        return not self.bounds.deadlocks and (bool(self.deadlock) or self.ended_deadlock)

    # -- what everyone can see ------------------------------------------------------------------------------------

    def shared(self) -> bytes:
        """What everyone could see now, as a digest, regardless of the time that leases have left."""
        return b"|".join(server.contents() for server in self.servers.values())

    def polled(self) -> bytes:
        """… and which workers hold a lock beyond their transactions: what one that polls may find changed."""
        keepers = [
            (name, worker.index)
            for name, server in self.servers.items()
            for worker in self.workers
            if server.keeps_out(list(worker.sessions.get(name, ())))
        ]
        return self.shared() + repr(keepers).encode() if keepers else self.shared()

    def leases(self) -> dict[tuple[str, str], int]:
        """When each lease ends, by server and key."""
        return {
            (server.name, key): end
            for server in self.servers.values()
            for key, end in server.leases().items()
        }

    # -- what happens ---------------------------------------------------------------------------------------------

    def wake(self, task: Task, due: int) -> None:
        if task in self.waiting_line:
            self.waiting_line.remove(task)
        task.goes_on()
        task.acts_from(due)

    def notify(self, key: object, count: int | None = None) -> list[Task]:
        """Wake the first `count` tasks that wait for `key` (None: all). Returns them."""
        waiting = [t for t in self.tasks if t.state is State.WAIT and t.key is key and not t.notified]
        for task in waiting[:count]:
            task.notified = True
            self.wake(task, self.now)
        return waiting[:count]

    def progress(self) -> None:
        """Something has happened that was no poll in vain."""
        self.progress_at = self.now
        for task in self.tasks:
            task.history.tries = task.history.changes = 0

    def record(self, worker: str, task: str, kind: str, command: str, reply: str) -> None:
        """Write down a step for the people who read the schedule."""
        self.steps.append(step := Step(self.now, worker, task, kind, command, reply, len(self.spent)))
        if self.trace:
            self.trace(self, step)


#: which of the transitions is taken
Chooser = Callable[[World, Sequence[Transition]], int]
