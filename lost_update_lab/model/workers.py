"""Workers and their threads, as the scheduler sees them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn, Protocol

from lost_update_lab.model.chance import Chance, Moderate, Try
from lost_update_lab.model.commands import Op
from lost_update_lab.model.thread_history import ThreadHistory

#: a generator that stops wherever a thread would stand still, and goes on when it is the thread's turn
Standing = Generator[None, None, Any]


class Halt(BaseException):
    """Raised at a gate to end a thread. No `except Exception` catches it, and nothing the thread then does reaches a
    server."""


#: how often a thread may be told to end, in one `finally` after another; one that needs more swallows its end
MOST_HALTS = 20


def halt(task: Task) -> NoReturn:
    """End this thread. A thread that catches even that, and goes on, stands still here for ever."""
    task.halts += 1
    if task.halts > MOST_HALTS:
        task.swallows = True
        _taken().acquire()
    raise Halt


class State(Enum):
    RUN = "run"  # executes Python code, or will as soon as it is its turn
    READY = "ready"  # stands before a command
    BLOCKED = "blocked"  # its command waits in the server
    WAIT = "wait"  # sleeps, or waits for something in its own process
    DONE = "done"
    DEAD = "dead"  # a fault ended it; its thread stands still until the run is over


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


class EventLoop(Protocol):
    """gates/event_loop.py."""

    def current(self) -> Task:
        """The task that runs now."""

    def blocked_by(self, task: Task) -> bool:
        """Would other tasks of this loop go on, if its thread stood still for this one?"""

    async def live(self, task: Task, steps: Standing, leaves: Callable[[], bool] | None = None) -> Any:
        """Do these steps as a coroutine, which waits where they stop. `leaves`: cancelled, it waits for what becomes
        of what is under way; this happens if it is cancelled again."""


@dataclass(eq=False)
class Task:
    """One thread of a worker. Only the thread whose turn it is touches any of this."""

    name: str
    worker: WorkerProcess
    main: bool
    state: State = State.RUN
    op: Op | None = None
    #: when it was last due to act, in µs; its lateness counts from here. None: it has not begun
    due: int | None = None
    #: it has waited, or done what others may notice. Until then (after a BEGIN alone) it may still be as late as it
    #: likes
    shown: bool = False
    #: its last step was one that others cannot see. Only its clock could tell when that was
    unseen: bool = False
    #: its MULTI has queued a command that was told the time (Op.dated)
    dated: bool = False
    #: when its wait ends by itself
    until: int | None = None
    #: no decision was taken yet since it stopped here; what the clocks showed at the last one
    fresh: bool = True
    stood_at: int = -1
    #: what it waits for; `notified`: that came
    key: object = None
    notified: bool = False
    #: released when it is this thread's turn
    go: threading.Lock = field(default_factory=_taken)
    history: ThreadHistory = field(default_factory=ThreadHistory)
    #: its last round was the same as the one before, a poll in vain; since when, in µs
    vain_since: int | None = None
    #: it has slept through such polls since then (virtual_clock.wakes_at)
    dozed: bool = False
    #: when the leases end that existed before its round; `renews`: its last round moved one (a sign of life, a renewal)
    leases: Mapping[tuple[str, str], int] | None = None
    renews: bool = False
    #: what it was told in this round (`timed`), or in the last one, may change though nothing that it sees does: by a
    #: server's clock, or by a WATCH
    timed: bool = False
    by_clock: bool = False
    #: what everyone could see when its round began, plus what it has written itself since: a sign of life is not news
    seen: bytes = b""
    #: those whose locks have refused its last try, by server and number (refusals.py)
    refused_by: tuple[tuple[str, int], ...] = ()
    #: the step that it takes now starts from what it has seen
    own_step: bool = False
    #: how long it waits at a time
    period: int = 0
    #: the client connection of a command that waits in a server
    session: Any = None
    #: resumes that command when its time-out comes; called with the world and the task
    expire: Callable[[Any, Task], None] = field(default=lambda world, task: None)
    #: that command has waited
    waited: bool = False
    #: how often it was told to end and went on all the same
    halts: int = 0
    swallows: bool = False
    #: what ends the wait of its command, as its time is over
    late: str = ""
    #: the server chose it to end a deadlock
    victim: bool = False
    #: its client has given up its command, and the server may learn of it before the command ends; it has
    canceling: bool = False
    canceled: bool = False
    #: its client has just begun a transaction for this command; and it was that BEGIN that the server cancelled
    has_begun: bool = False
    cancels_begin: bool = False
    #: its client is gone: what was sent takes effect, and nobody hears more. It is no thread, or that of a worker that
    #: has crashed
    unheard: bool = False
    #: its command is executed, and its client does not hear about it
    loses_reply: bool = False
    #: random draws since its last command, in bits, by the place in its code (random_choice.py)
    choices: dict[str, float] = field(default_factory=dict)
    thread: threading.Thread | None = None
    #: it is a coroutine, or a timer, of an event loop in that thread (gates/event_loop.py)
    coroutine: bool = False
    timer: bool = False
    #: the event loop that runs in its thread now
    loop: EventLoop | None = None
    #: what it was told last (recording.py); what it does, where no thread does it; what it stands before,
    #: where no server is asked either (in_memory_run.py)
    heard: Hashable = "begin"
    steps: Standing | None = None
    event: Any = None
    #: where it is in the recording; how many rounds were left out of its history without having been watched
    node: Any = None
    guesses: int = 0
    #: the number of the thread that has started it to do once more what that one did: a Timer that arms itself again
    after: int | None = None
    #: the connections that it uses, by server. A connection's name is the thread that uses it, and its place here
    uses: dict[str, list[Any]] = field(default_factory=dict)

    # -- what happens to it: what changes together, changes here ------------------------------------------------

    def stands_before(self, op: Op) -> None:
        self.op, self.state, self.fresh = op, State.READY, True

    def waits_for(self, key: object, op: Op) -> None:
        """It waits in its own process until `key` comes."""
        self.op, self.key, self.notified, self.state, self.fresh = op, key, False, State.WAIT, True

    def sent(self, session: Any, expire: Callable[[Any, Task], None]) -> None:
        """Its command waits in a server. `expire`: ends that wait when its time is over."""
        self.session, self.expire = session, expire

    def is_blocked(self) -> None:
        self.state, self.waited = State.BLOCKED, True

    def goes_on(self) -> None:
        """Its wait is over."""
        self.state, self.until, self.key = State.RUN, None, None

    def acts_from(self, due: int) -> None:
        """It is due at this time, and others may have noticed."""
        self.due, self.shown = due, True

    def is_canceled(self, begin: bool = False) -> None:
        """The server learns that its client has given up its command; or the BEGIN before that."""
        self.canceling, self.canceled, self.cancels_begin = False, True, begin

    def is_answered(self) -> None:
        self.canceling = self.canceled = self.has_begun = self.cancels_begin = False

    def is_not_in_vain(self) -> None:
        self.vain_since, self.dozed = None, False

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self.state not in (State.DONE, State.DEAD)

    @property
    def looks_again(self) -> bool:
        """Is it in the middle of a round that may turn out to be in vain? Then what others do meanwhile is news."""
        return self.leases is not None and self.history.comes_again

    @property
    def beside(self) -> bool:
        """Is it a thread beside the main one, or a coroutine of such a thread?"""
        return not self.main and not (self.coroutine and self.thread is self.worker.main.thread)

    @property
    def goes_on_as_another(self) -> bool:
        """Has it ended, and another thread does in its place what it did?"""
        return not (self.alive or self.main) and any(each.after == self.number for each in self.worker.tasks)

    @property
    def number(self) -> int:
        """Its number among the threads of its worker."""
        return self.worker.tasks.index(self)


@dataclass(eq=False)
class WorkerProcess:
    """One "process": its threads, its clients, its clock and its random numbers."""

    name: str
    index: int
    tasks: list[Task] = field(default_factory=list)
    paused: bool = False
    #: in which order its coroutines went on, as a digest. "": it has only one (gates/event_loop.py)
    order: bytes = b""
    #: what everyone could see when its resume was last offered; and the time, in µs, at which it was last offered
    #: because time had passed
    offered: tuple[bytes, int] | None = None
    crashed: bool = False
    #: it has not begun, and does not unless another worker crashes (Bounds.stands_for)
    dormant: bool = False
    #: its main thread was ended from outside, in the middle of something
    halted: bool = False
    #: it has sent a command that is more than a read
    changed: bool = False
    #: how many transactions it has committed that may have changed something
    commits: int = 0
    #: the SHA-1 of a script that its server does not know. "": there is none (gates/redis/unknown_scripts.py)
    unknown_script: bytes = b""
    #: a fault of its own struck it
    struck: bool = False
    #: when it ended, no other live worker was inside; and, where it ends with a ROLLBACK, nor when it came to that
    alone: bool = False
    #: it stands before a ROLLBACK, or has sent one last, and another worker was inside when it came to that
    met: bool = False
    #: how far its wall clock is off, in µs
    offset: int = 0
    #: how many random numbers it has drawn, and what it has made of them since it last waited
    chance: Chance = field(default_factory=Chance)
    trying: Try = field(default_factory=Try)
    result: Any = None
    error: BaseException | None = None
    #: connections seen at the gates, by server, with the thread that uses them
    sessions: dict[str, dict[Any, Task]] = field(default_factory=dict)
    #: the servers whose faults have cut off its connections, and those of its threads that a fault has ended, in that
    #: order. Its code may notice at any time
    cuts: tuple[str, ...] = ()

    @property
    def main(self) -> Task:
        return self.tasks[0]

    @property
    def line(self) -> list[Task]:
        """The main thread, with the coroutines of its event loop."""
        return [task for task in self.tasks if not task.beside]

    @property
    def finished(self) -> bool:
        return self.crashed or not self.main.alive

    def draws(self, place: str, seed: str = "") -> Moderate:
        """The source of its next random number at this place of its code. Each place has its own source. Otherwise the
        number of times that a waiter has drawn the length of its sleep would decide the names drawn afterwards, and
        each such number would make a state of its own."""
        number = self.chance.places[place] = self.chance.places.get(place, 0) + 1
        return Moderate(f"{seed or f'{self.chance.salt}{self.index}'} {place} {number}")

    @property
    def pid(self) -> int:
        """What os.getpid() returns inside the worker: two workers are two processes."""
        return 1_000_001 + self.index
