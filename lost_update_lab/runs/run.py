"""One schedule, executed: real threads, of which exactly one runs at a time.

The thread that has the baton runs its Python code up to its next gate (a command, a sleep, a wait). There it
asks what may happen next, has one option chosen, and either goes on itself or hands the baton to another
thread and stands still. There is no scheduler thread: a worker that goes on costs no switch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import inf
from typing import TypeVar

from lost_update_lab.memo.playing import Begins, Ended, Event, Standing, Waiting
from lost_update_lab.memo.recording import Recorder, Recording
from lost_update_lab.model.bounds import Bounds, Fault, Reduction
from lost_update_lab.model.commands import Op, Step
from lost_update_lab.model.server import Server
from lost_update_lab.model.subject import Ending
from lost_update_lab.model.transitions import Option
from lost_update_lab.model.workers import Halt, State, Task, Worker
from lost_update_lab.runs.scheduler import Baton
from lost_update_lab.runs.whereabouts import whereabouts
from lost_update_lab.schedule import polls as rounds
from lost_update_lab.schedule import retries, transition, virtual_time

E = TypeVar("E", bound=Event)


def _lost(run: Run) -> Option:
    raise NotImplementedError


class Run(Baton):
    """The state of one schedule while it is executed."""

    def __init__(
        self,
        workers: Sequence[Worker],
        servers: dict[str, Server],
        bounds: Bounds,
        choose: Callable[[Run, Sequence[Option]], int],
        watched: dict[bytes, int],
    ) -> None:
        super().__init__()
        self.workers, self.servers, self.bounds, self.choose = workers, servers, bounds, choose
        self._know_tasks()
        #: for how long each kind of poll in vain was watched in earlier runs, in µs (timeline.wakes_at), and in
        #: this one. The chooser exchanges `watched`, so that a path is repeated as it was first walked.
        self.watched, self.learned = watched, dict[bytes, int]()
        self.full = bounds.reduction is Reduction.FULL
        self.now = 0
        self.spent: list[Fault] = []
        self.charged: set[str] = set()  # servers whose failover is among them (faults.charge)
        self.touched = set(servers)  # where something has happened since faults were last offered
        self.collapsed = False  # a poll in vain was taken for the one before
        self.beyond = False  # … when nobody else was due: from then on not each of them branches
        self.steps = list[Step]()
        self.trace: Callable[[Run, Step], None] | None = None
        self.waiting_line: list[Task] = []  # blocked in a server, in the order in which they came
        self.last: Task | None = None
        self.progress_at = 0  # when something last happened that was no poll in vain
        self.longest = 0  # lease or wait, in µs: as far as is known
        self.patience = bounds.patience  # for how much longer polls in vain are watched
        self.leases_stand = False  # an experiment on the waiters (poll_watch.py): no lease ends
        self.wall_clock_read = self.looks = False  # by a worker; in the runs before the search
        self.applicable: set[Fault] = set()
        self.deadlock: list[Task] = []
        self.stuck = self.cut = False
        self.cold = False  # a server had to be told something that it keeps: the next run will differ
        self.around = ""  # who went around the gates
        self.endings: list[Ending] = []
        self.decisions = 0
        #: so many decisions were taken before, on the same path: what `follow` says comes next, whatever else may
        self.beaten = 0
        self.follow: Callable[[Run], Option] = _lost
        self.until = inf  # when the search has to end, by time.perf_counter
        self.recording: Recording | None = None  # what is known of the workers
        self.recorder: Recorder | None = None  # listens while real code runs
        self.learns = False  # what the servers answer is noted, to be known from then on (in_memory_run.py)
        self._keys: dict[tuple[int, tuple[str, int, int]], object] = {}  # by the number of the worker

    # -- the life of a run ----------------------------------------------------------------------------------

    def next_task(self) -> Task | None:
        return transition.next_task(self)

    def whereabouts(self) -> str:
        return whereabouts(self)

    def play(self) -> None:
        """The same without any thread, for workers whose doings are known. Raises Unknown where they are not."""
        while task := self.next_task():
            self.played(task)

    def played(self, task: Task) -> None:
        """Its turn, where its doings are known."""
        assert task.steps is not None
        try:
            next(task.steps)
        except StopIteration:
            self.ended(task)

    def _know_tasks(self) -> None:
        self.tasks = [task for worker in self.workers for task in worker.tasks]
        self._named = {task.name: task for task in self.tasks}

    # -- what the gates call ----------------------------------------------------------------------------------

    def standing(self, task: Task, op: Op) -> Standing:
        """Stand before `op` until it is this task's turn."""
        self.stand(task, op)
        yield

    def stand(self, task: Task, op: Op) -> None:
        if self.ending:
            raise Halt
        task.op, task.state, task.fresh = op, State.READY, True

    def wait(self, task: Task, key: object, seconds: float | None, text: str) -> bool:
        """A thread waits for `key`, or for the time. → did `key` come?"""
        if self.recorder and not self.ending:
            self.recorder.arrives(task, Waiting(self.recorder.key(task, key), seconds, text))
        return bool(self.live(task, self.waiting(task, key, seconds, text)))

    def waiting(self, task: Task, key: object, seconds: float | None, text: str) -> Standing:
        self.stand_still(task, key, seconds, text)
        yield
        return self.waited(task)

    def stand_still(self, task: Task, key: object, seconds: float | None, text: str) -> None:
        if self.ending:
            raise Halt
        task.op = Op("", text, text.encode())
        task.key, task.notified, task.state, task.fresh = key, False, State.WAIT, True
        rounds.close(self, task, seconds)

    def waited(self, task: Task) -> bool:
        what = "woken" if task.notified else "again" if retries.again(self, task) else "time"
        task.history.add(what.encode())
        self.heard(task, what)
        return task.notified

    def blocked(self, task: Task, seconds: float | None = None, polls: bool = False) -> Standing:
        """The server lets this task's command wait. Ends when it may look for its reply again. `polls`: it will do
        something else when the time is over, so what it did until now was a round."""
        self.block(task, seconds, polls)
        yield

    def block(self, task: Task, seconds: float | None = None, polls: bool = False) -> None:
        task.state = State.BLOCKED
        if polls:
            rounds.close(self, task, seconds)
        else:
            rounds.until(self, task, seconds)
        self.waiting_line.append(task)

    def heard(self, task: Task, what: Hashable) -> None:
        """The task was told this. Whatever it does until its next gate follows from it, and from the clocks."""
        task.heard = what
        retries.hear(self, task, what)
        if self.recorder:
            self.recorder.heard(task)

    def arrives(self, task: Task, event: E) -> E:
        """A thread stands before this. → the same as it was recorded first"""
        return self.recorder.arrives(task, event) if self.recorder else event

    def key(self, worker: Worker, name: tuple[str, int, int]) -> object:
        """What a recorded name stands for in this run."""
        if name[0] == "task":
            return worker.tasks[name[1]]
        return self._keys.setdefault((worker.index, name), object())

    def begin_to_look(self, task: Task) -> None:
        """A thread is about to look at a clock. Before its first command, when that is is a decision of its own."""
        if task.due is None and not self.ending:
            self.live(task, self.arrives(task, Begins()).play(self, task))

    def new_thread(self, worker: Worker) -> Task:
        task = Task(f"{worker.name}.{len(worker.tasks)}", worker, main=False, due=self.now)
        worker.tasks.append(task)
        self._know_tasks()
        return task

    def notify(self, key: object, count: int | None = None) -> list[Task]:
        """Wake those who wait for `key`, the first `count` of them. → those"""
        waiting = [t for t in self.tasks if t.state is State.WAIT and t.key is key and not t.notified]
        for task in waiting[:count]:
            task.notified = True
            self.wake(task, self.now)
        return waiting[:count]

    def wake(self, task: Task, due: int) -> None:
        if task in self.waiting_line:
            self.waiting_line.remove(task)
        task.state, task.until, task.key, task.due = State.RUN, None, None, due

    def finished(self, task: Task) -> None:
        """The thread's code is at its end: hand the baton on."""
        if self.recorder and not self.ending:
            self.recorder.arrives(
                task, Ended(*((task.worker.result, task.worker.error) if task.main else ()))
            )
        self.ended(task)
        if not self.ending:
            self._pass_on(task)

    def ended(self, task: Task) -> None:
        if task.alive:
            task.state = State.DONE
        if task.main:
            others = (w for w in self.workers if w is not task.worker)
            task.worker.alone = all(virtual_time.is_outside(other) for other in others)
        self.progress()
        if not self.ending:
            self.notify(task)

    def progress(self) -> None:
        """Something has happened that was no poll in vain."""
        self.progress_at = self.now
        for task in self.tasks:
            task.history.attempts = task.history.changes = 0

    def told(self, task: Task, op: Op, reply: str) -> None:
        """Write down a step for those who read the schedule."""
        task.history.sent.append(op.text)
        retries.send(task, op.identity)
        self.record(task.worker.name, task.name, "step", op.text, reply)

    def record(self, worker: str, task: str, kind: str, command: str, reply: str) -> None:
        self.steps.append(step := Step(self.now, worker, task, kind, command, reply, len(self.spent)))
        if self.trace:
            self.trace(self, step)

    def task(self, name: str) -> Task:
        return self._named[name]

    def worker(self, name: str) -> Worker:
        return next(worker for worker in self.workers if worker.name == name)
