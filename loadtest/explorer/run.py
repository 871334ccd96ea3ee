"""One schedule, executed: real threads, of which exactly one runs at a time.

The thread that has the baton runs its Python code up to its next gate (a command, a sleep, a wait). There it
asks what may happen next, has one option chosen, and either goes on itself or hands the baton to another
thread and stands still. There is no scheduler thread: a worker that goes on costs no switch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import inf

from loadtest.explorer import faults, rounds, timeline
from loadtest.explorer.bounds import Bounds, Fault, Reduction
from loadtest.explorer.endless import Broken, still_bounded
from loadtest.explorer.ops import Op, Step
from loadtest.explorer.options import FREE, STEPS, Kind, Option
from loadtest.explorer.servers.base import Server
from loadtest.explorer.subject import Ending
from loadtest.explorer.tasks import Halt, State, Task, Worker

#: what a chooser answers to cut a run short
CUT = -1


class Run:
    """The state of one schedule while it is executed."""

    def __init__(
        self,
        workers: Sequence[Worker],
        servers: dict[str, Server],
        bounds: Bounds,
        choose: Callable[[Run, Sequence[Option]], int],
        watched: dict[bytes, int],
    ) -> None:
        self.workers, self.servers, self.bounds, self.choose = workers, servers, bounds, choose
        #: for how long each kind of poll in vain was watched in earlier runs, in µs (timeline.wakes_at), and in
        #: this one. The chooser exchanges `watched`, so that a path is repeated as it was first walked.
        self.watched, self.learned = watched, dict[bytes, int]()
        self.full = bounds.reduction is Reduction.FULL
        self.now = 0
        self.spent: list[Fault] = []
        self.charged: set[str] = set()  # servers whose failover is among them (faults.charge)
        self.touched = set(servers)  # where something has happened since faults were last offered
        self.collapsed = False  # a poll in vain was taken for the one before
        self.steps: list[Step] = []
        self.trace: Callable[[Run, Step], None] | None = None
        self.waiting_line: list[Task] = []  # blocked in a server, in the order in which they came
        self.last: Task | None = None
        self.progress_at = 0  # when something last happened that was no poll in vain
        self.longest_lease = 0
        self.leases_stand = False  # an experiment on the waiters (waiters.py): no lease ends
        self.wall_clock_read = False
        self.applicable: set[Fault] = set()
        self.deadlock: list[Task] = []
        self.stuck = self.cut = self.ending = False
        self.cold = False  # a server had to be told something that it keeps: the next run will differ
        self.error: BaseException | None = None
        self.around = ""  # who went around the gates
        self.endings: list[Ending] = []
        self.over = threading.Lock()
        self.over.acquire()
        self.decisions = 0
        self.until = inf  # when the search has to end, by time.perf_counter
        self.news = 0  # grows with every decision: the watchdog's sign of life

    # -- the life of a run ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Hand the baton to the first worker. Returns when the run is over, its threads still standing."""
        self._pass_on(None)
        seen = -1
        while not self.over.acquire(timeout=20):
            if self.news == seen:
                raise Broken(timeline.whereabouts(self))
            seen = self.news

    @property
    def tasks(self) -> list[Task]:
        return [task for worker in self.workers for task in worker.tasks]

    # -- what the gates call ----------------------------------------------------------------------------------

    def gate(self, task: Task, op: Op) -> None:
        """Stand before `op` until it is this task's turn. Raises Halt when the task's life is over."""
        if self.ending:
            raise Halt
        task.op, task.state, task.fresh = op, State.READY, True
        self._stand(task)

    def wait(self, task: Task, key: object, seconds: float | None, text: str) -> bool:
        """Wait for `key`, or for the time. → did `key` come?"""
        if self.ending:
            raise Halt
        task.op = Op("", text, text.encode())
        task.key, task.notified, task.state = key, False, State.WAIT
        rounds.close(self, task, seconds)
        self._stand(task)
        task.history.add(b"woken" if task.notified else b"time")
        return task.notified

    def blocked(self, task: Task, seconds: float | None = None, polls: bool = False) -> None:
        """The server lets this task's command wait. Returns when it may look for its reply again. `polls`: it will do
        something else when the time is over, so what it did until now was a round."""
        task.state = State.BLOCKED
        if polls:
            rounds.close(self, task, seconds)
        else:
            rounds.until(self, task, seconds)
        self.waiting_line.append(task)
        self._stand(task)

    def notify(self, key: object, count: int | None = None) -> None:
        """Wake those who wait for `key`, the first `count` of them."""
        waiting = [t for t in self.tasks if t.state is State.WAIT and t.key is key and not t.notified]
        for task in waiting[:count]:
            task.notified = True
            self.wake(task, self.now)

    def wake(self, task: Task, due: int) -> None:
        if task in self.waiting_line:
            self.waiting_line.remove(task)
        task.state, task.until, task.key, task.due = State.RUN, None, None, due

    def finished(self, task: Task) -> None:
        """The task's code is at its end: hand the baton on."""
        if task.alive:
            task.state = State.DONE
        if task.main:
            others = (w for w in self.workers if w is not task.worker)
            task.worker.alone = all(timeline.is_outside(other) for other in others)
        self.progress()
        if not self.ending:
            self.notify(task)
            self._pass_on(task)

    def progress(self) -> None:
        """Something has happened that was no poll in vain."""
        self.progress_at = self.now
        for task in self.tasks:
            task.history.attempts = 0

    def told(self, task: Task, op: Op, reply: str) -> None:
        """Write down a step for those who read the schedule."""
        task.history.verb(op.text)
        self.record(task.worker.name, task.name, "step", op.text, reply)

    def record(self, worker: str, task: str, kind: str, command: str, reply: str) -> None:
        step = Step(self.now, worker, task, kind, command, reply, len(self.spent))
        self.steps.append(step)
        if self.trace:
            self.trace(self, step)

    # -- the baton --------------------------------------------------------------------------------------------

    def _stand(self, task: Task) -> None:
        if not self._pass_on(task):
            task.go.acquire()
        if self.ending or task.state is State.DEAD:
            raise Halt

    def _pass_on(self, me: Task | None) -> bool:
        """Choose who runs next. → is it `me`?"""
        self.news += 1
        try:
            chosen = self._next()
        except BaseException as error:  # noqa: BLE001  (shown by the thread that waits for the run)
            self.error, chosen = error, None
        if chosen is None:
            self.over.release()
        elif chosen is me:
            return True
        else:
            chosen.go.release()
        return False

    def _next(self) -> Task | None:
        while True:
            timeline.look_who_is_free(self)
            for task in self.tasks:
                if task.state is State.RUN:
                    return task
            if all(worker.finished for worker in self.workers):
                return None
            options = timeline.options(self)
            if not options:
                self.stuck = True
                return None
            self.decisions += 1
            still_bounded(self)
            pick = self.choose(self, options)
            if pick == CUT:
                self.cut = True
                return None
            if self.stuck:  # the chooser has seen enough polls in vain
                return None
            if task_or_none := self._apply(options[pick]):
                return task_or_none

    def _apply(self, option: Option) -> Task | None:
        op = self.task(option.who).op if option.kind is Kind.STEP else None
        self.touched.update([op.server] if op else self.servers)
        if option.kind not in FREE:
            faults.apply(self, option)
        if option.kind is Kind.TICK or option.kind is Kind.PAUSE:
            timeline.tick(self)
        elif option.kind is Kind.RESUME:
            timeline.resume(self, option.who)
        elif option.kind is Kind.VICTIM:
            timeline.abort(self, self.task(option.who))
        elif option.kind is Kind.FAILOVER:
            faults.fail_over(self, option.who)
        elif option.kind in STEPS:
            task = self.task(option.who)
            assert task.op is not None
            task.op.lose_reply = option.kind is Kind.LOST_REPLY
            task.state, self.last = State.RUN, task
            task.own_step = task.vain_since is not None and task.seen == timeline.shared(self)
            if task.due is None:
                task.due = self.now
            self.servers[task.op.server].before_step(task.op)
            return task
        return None

    def task(self, name: str) -> Task:
        return next(task for task in self.tasks if task.name == name)

    def worker(self, name: str) -> Worker:
        return next(worker for worker in self.workers if worker.name == name)
