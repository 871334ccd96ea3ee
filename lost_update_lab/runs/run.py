"""One schedule, executed: real threads, of which exactly one runs at a time.

The thread whose turn it is runs its Python code up to its next gate (a command, a sleep, a wait). There it asks which
transitions are enabled and has one chosen. Then it either goes on itself, or hands the turn to another thread and
stands still. The scheduler has no thread of its own, so a worker that goes on costs no switch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from lost_update_lab.memo.events import Begins, Ended, Waiting
from lost_update_lab.memo.recording import Event, Recorder, Recording
from lost_update_lab.model.bounds import Bounds
from lost_update_lab.model.commands import ACKNOWLEDGES, BEGINS, LOOKS_AT_CLOCK
from lost_update_lab.model.effects import TIME_OF_DAY
from lost_update_lab.model.errors import Broken, Unknown
from lost_update_lab.model.server import Server
from lost_update_lab.model.workers import Halt, Standing, State, Task, WorkerProcess, halt
from lost_update_lab.runs.forgotten import forgotten
from lost_update_lab.runs.hang import Watchdog, out_of_time
from lost_update_lab.runs.memory import Memory
from lost_update_lab.runs.own_mistakes import ends_the_search
from lost_update_lab.schedule import decisions, faults, pending, random_choice
from lost_update_lab.schedule.world import Chooser, World

E = TypeVar("E", bound=Event)
_now = time.perf_counter  # the real one: workers see another
BLOCKS = "{who} blocks its event loop, for which other coroutines wait: it sleeps, or sends something, without `await`"
AWAIT_IT = "await a client of asyncio there, asyncio.sleep(), or asyncio.to_thread()"
#: seconds between two looks at threads that send no news
LOOK_EVERY = 0.5


class Run(World):
    """The state of one schedule while it is executed."""

    recording: Recording | None
    recorder: Recorder | None

    def __init__(
        self, workers: Sequence[WorkerProcess], servers: dict[str, Server], bounds: Bounds, choose: Chooser
    ) -> None:
        super().__init__(workers, servers, bounds, choose)
        self._over = threading.Lock()
        self._over.acquire()
        self._turn: Task | None = None  # the one whose thread runs
        self.hung: Task | None = None  # it no longer comes to a gate
        #: a worker has run an event loop
        self.loops = False
        #: the connections of a worker that is fed, to PostgreSQL and to Redis (gates/*/fed.py)
        self.played: Any = None
        self.before: Any = None
        self.memory: Memory | None = None
        self.news = 0  # grows with every decision: the watchdog's sign of life

    # -- the scheduler --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Hand the turn to the first worker. Returns when the run is over, while its threads still stand."""
        self._pass_on(None)
        watchdog = Watchdog(self.bounds.budget)
        while not self._over.acquire(timeout=LOOK_EVERY):
            now = _now()
            broken = watchdog.look(self.news, self._turn, now)
            if broken is None and now > self.until + LOOK_EVERY:
                broken = out_of_time(self._turn, self.bounds.budget, now - watchdog.since)
            if broken:
                self.hung = self._turn
                raise broken

    def play(self) -> None:
        """The same without any thread, for workers whose steps are known. Raises Unknown where they are not."""
        while task := decisions.next_task(self):
            self._replay_turn(task)

    def live(self, task: Task, steps: Standing) -> Any:
        """Do these steps as a thread, which stands still where they stop. Raises Halt when the task's life is over."""
        if task.loop and task.loop.blocked_by(task):
            self.error = Broken(BLOCKS.format(who=task.worker.name), AWAIT_IT)
        try:
            return self._live(task, steps)
        finally:
            if task.unheard and task.alive and not self.ending:  # its worker has crashed since
                faults.end(self, task)
                self.stand(task)

    def _live(self, task: Task, steps: Standing) -> Any:
        try:
            next(steps)
            while True:
                try:
                    self.stand(task)
                except Halt as over:
                    steps.throw(over)
                next(steps)
        except StopIteration as done:
            return done.value
        except Exception as error:  # the operation's own code could take it for an answer
            if not ends_the_search(error):
                raise
            self.error = self.error or error
            return halt(task)

    def stand(self, task: Task) -> Task:
        """The thread stands still. Returns the task whose turn it is then: this one, or another of the same event loop.
        Raises Halt when the task's life is over."""
        index = task.worker.index
        if self.memory:
            self.memory.stands(index)
        if not (mine := self._pass_on(task)):
            task.go.acquire()
        if self.ending or not task.alive:
            halt(task)
        if self.memory and not mine:
            self.error = self.error or self.memory.goes_on(index)
        assert self._turn
        return self._turn

    def _pass_on(self, me: Task | None) -> bool:
        """Choose the task that runs next. Returns whether it runs in the thread of `me`."""
        self.news += 1
        disk = self.disk
        if disk is not None and me:
            disk.turned((me.worker.index, me.number))
        try:
            while (chosen := decisions.next_task(self)) and chosen.steps:  # its worker's steps are known
                self._replay_turn(chosen)
        except BaseException as error:  # noqa: BLE001  (shown by the thread that waits for the run)
            self.error, chosen = error, None
        self._turn = chosen
        if disk is not None and chosen:
            disk.goes_on()
        if chosen is None:
            self._over.release()
        elif me is not None and chosen.go is me.go:
            return True
        else:
            chosen.go.release()
        return False

    def _replay_turn(self, task: Task) -> None:
        """Take the turn of a task whose steps are known."""
        assert task.steps is not None
        try:
            next(task.steps)
        except StopIteration:
            pending.end(self, task)

    def refuse(self, task: Task, why: Exception | None = None) -> NoReturn:
        """Real code does something that cannot be fed: the run has to be executed on the servers."""
        self.error = self.error or why or Unknown(task.worker.index)
        halt(task)

    # -- what the gates call --------------------------------------------------------------------------------------

    def arrives(self, task: Task, event: E) -> E:
        """A thread stands before this event. Returns the equal event that was recorded first."""
        self._look_for_forgotten(task)
        return self.recorder.arrives(task, event) if self.recorder else event

    def _look_for_forgotten(self, task: Task) -> None:
        if not (self.fed or self.ending):
            self.error = self.error or forgotten(task.worker, self.servers)

    def wait(self, task: Task, key: object, seconds: float | None, text: str) -> bool:
        """A thread waits for `key`, or until the time is over. Returns whether `key` came."""
        return bool(self.live(task, self.waiting(task, key, seconds, text)))

    def waiting(self, task: Task, key: object, seconds: float | None, text: str) -> Standing:
        """The same, as steps."""
        if self.recorder and not self.ending:
            self.recorder.arrives(task, Waiting(self.recorder.key(task, key), seconds, text))
        return (yield from pending.waiting(self, task, key, seconds, text))

    def begin_to_look(self, task: Task, clock: str = "") -> None:
        """A thread is about to look at a clock. Before its first command, that is a decision of its own; and after a
        step that nobody else can see, which comes as early as it can (enabled.py). Where each look is shown another
        time, each is one, unless the event loop would stop there for other coroutines."""
        each = self.distinct_times and clock in TIME_OF_DAY and not (task.loop and task.loop.blocked_by(task))
        if (task.due is None or task.unseen or each) and not self.ending:
            event = Begins(LOOKS_AT_CLOCK if each else BEGINS)
            self.live(task, self.arrives(task, event).play(self, task))

    def acknowledges(self, task: Task) -> None:
        """A task's work is done, and its queue is not told yet: a worker that crashes here is delivered again."""
        if not self.ending:
            self.live(task, self.arrives(task, Begins(ACKNOWLEDGES)).play(self, task))

    def new_unheard(self, task: Task) -> Task:
        """What the client of this task has sent goes on without it: nobody hears more of it."""
        if self.recorder:
            self.recorder.opaque("a command that was given up")
        left = self.new_thread(task.worker, "t")
        left.unheard = left.coroutine = True
        left.thread, left.history = task.thread, task.history.copy()
        return left

    def finished(self, task: Task) -> None:
        """The thread's code has ended: hand the turn on."""
        self._look_for_forgotten(task)
        if self.recorder and not (self.ending or self.error):
            answer = (task.worker.result, task.worker.error) if task.main else ()
            self.recorder.arrives(task, Ended(*answer))
        random_choice.acts(self, task)
        for coroutine in task.worker.tasks:
            if coroutine.coroutine and coroutine.go is task.go and coroutine.alive:
                coroutine.state = State.DONE
        pending.end(self, task)
        if not self.ending:
            self._pass_on(task)
