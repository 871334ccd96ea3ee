"""The harness: gates installed, servers known, one thread kept for each worker. Runs schedules one after another."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import inf
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypeVar

from lost_update_lab.gates import (
    celery,
    clocks,
    coroutines,
    event_loop,
    executors,
    files,
    imports,
    logs,
    mariadb,
    outside,
    process_memory,
    recorded_calls,
    threads,
)
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.postgres import gate as psycopg
from lost_update_lab.gates.postgres import many, stream
from lost_update_lab.gates.postgres.connections import mend
from lost_update_lab.gates.redis import clock, connections
from lost_update_lab.gates.redis import gate as redis
from lost_update_lab.gates.redis.unknown_scripts import ends_without
from lost_update_lab.harness.feeding import Feeding
from lost_update_lab.harness.judged_runs import JudgedRuns
from lost_update_lab.memo.events import replayed
from lost_update_lab.memo.recording import Recorder, Recording
from lost_update_lab.model.bounds import Bounds
from lost_update_lab.model.chance import Drawn
from lost_update_lab.model.commands import Step
from lost_update_lab.model.disk import FILES
from lost_update_lab.model.errors import ITS_OWN_THREADS, BeginsAgain, Broken
from lost_update_lab.model.gaps import Lease
from lost_update_lab.model.memoised_server import MemoisedServer
from lost_update_lab.model.server import Server
from lost_update_lab.model.system import SystemUnderTest, ending_of, words_of
from lost_update_lab.model.workers import Halt, State, Task, WorkerProcess
from lost_update_lab.runs import garbage
from lost_update_lab.runs.executed import noting
from lost_update_lab.runs.hang import HUNG_WITHIN, hang, swallows
from lost_update_lab.runs.in_memory_run import InMemoryRun
from lost_update_lab.runs.memory import Memory
from lost_update_lab.runs.place import Active, Here, attach
from lost_update_lab.runs.run import Run
from lost_update_lab.runs.worker_thread import END_WITHIN, LOOK_EVERY, WorkerThread
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.world import Chooser, World
from lost_update_lab.servers.connections_before import look_around
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres.kept import renew
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer

GATES: tuple[Callable[[Patches], None], ...] = (
    clocks.install,
    threads.install,
    executors.install,
    psycopg.install,
    many.install,
    stream.install,
    event_loop.install,
    coroutines.install,
    redis.install,
    clock.install,
    mariadb.install,
    outside.install,
    imports.install,
    logs.install,
    process_memory.install,
    celery.install,
    recorded_calls.install,
)
T = TypeVar("T")
_now = time.perf_counter  # the real one: workers see another
COLLECT_EVERY = 100  # runs; a server has room for some hundred connections
COLLECT_OFTEN = 10  # … where each run makes several anew: what belonged to an event loop ends with it


class Harness:
    """A context manager. `servers`: real ones, which nothing else uses meanwhile."""

    def __init__(
        self,
        system: SystemUnderTest,
        servers: Sequence[Server],
        bounds: Bounds,
        gates: Sequence[Callable[[Patches], None]] = (),
    ) -> None:
        self.system, self.bounds, self.gates = system, bounds, gates
        self.servers = {server.name: server for server in servers}
        self.patches = Patches()
        self.until, self.runs = (bounds.begun or _now()) + (bounds.budget or inf), 0
        self.all_begin = False  # also the workers that wait for a crash: so that their clients are warm, too
        self.distinct_times = False  # World.distinct_times
        self.one_by_one = False  # serial orders: nothing is delivered twice
        #: how far each worker's clocks run ahead, in µs, and by what its random numbers are drawn (serial.py)
        self.ahead, self.salt = 0, ""
        self.keeps = False  # a search is under way, and what exists stays until its end (garbage.py)
        #: found out before a search (poll_calibration.py): does a worker look at a wall clock? The longest lease, in µs
        self.looks, self.longest = False, 0
        self.known_to_look = False  # found out in a search, or before a replay
        self.counting: frozenset[bytes] = frozenset()  # as in World
        self.counted: Collection[Lease] = ()  # found out before a search (World.counted)
        self.recording = Recording() if bounds.recorded else None
        #: what the modules hold whose code is not known to leave nothing behind
        self.memory: Memory | None = None
        #: see schedule/cached_names.py
        self.cached_names: dict[Drawn, tuple[int, str]] = {}
        #: are answers noted, to be known from then on? What is known of the servers in their opening state
        self.learns = False
        self.opening: dict[str, MemoisedServer] = {}
        self.judge = JudgedRuns(system, self.servers)
        self.random_choice = ""  # where a worker has drawn one of few (schedule/random_choice.py)
        self.feeding = Feeding(self)
        self.threads = [WorkerThread() for _ in range(bounds.workers)]
        self._open = ExitStack()

    def __enter__(self) -> Self:
        look_around()
        of_files = (files.install,) if FILES in self.servers else ()
        own = (*GATES, *of_files)
        for gates in (own, self.gates):  # a gate that is given to the explorer may hold what it replaces
            for install in gates:
                install(self.patches)
            self.patches.apply(in_objects=gates is own)
        Active.servers = self.servers
        for server in self.servers.values():
            server.watch()
        self._open.enter_context(garbage.not_now())  # but for `_has_run`
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self.patches.undo()
        self.feeding.close()
        if self.recording:
            self.recording.let_go()
        Active.servers = {}
        for index, thread in enumerate(self.threads):
            thread.give(lambda index=index: self.system.leave(index))  # type: ignore[misc]
            thread.finish(END_WITHIN)
            thread.give(None)
            thread.thread.join(END_WITHIN)  # what is its own goes with it

    def run(
        self,
        choose: Chooser,
        watched: dict[bytes, int],
        trace: Callable[[World, Step], None] | None = None,
        known: Mapping[str, int] = MappingProxyType({}),
        real: Collection[int] | None = None,
    ) -> Run:
        """Execute one schedule. Afterwards every thread has ended its work, and every session is idle. `known`: the
        version up to which each server's contents are those of the previous run (9 % of the CPU time of a search).
        `real`: the workers that run their real code (None: all). The commands of the others come from the recording;
        raises Unknown where it ends."""
        self.system.reset({name for name, server in self.servers.items() if server.changed})
        for server in self.servers.values():
            server.begin(known.get(server.name, -1))
            server.learns = self.learns
            if self.ahead and server.timed:
                server.jump(self.ahead)
        if self.learns and not self.opening:
            self.opening = {name: server.memoised() for name, server in self.servers.items()}
        workers = [self.worker(index) for index in range(self.bounds.workers)]
        run = Run(workers, self.servers, self.bounds, choose)
        run.watched, run.trace, run.learns = watched, trace, self.learns
        self.know(run)
        run.memory, run.cached_names = self.memory, self.cached_names
        Active.run = run
        try:
            try:
                self._begin(run, real)
            finally:
                Active.run = None
                run.endings = [ending_of(worker) for worker in workers]
                self._end(run)
        finally:
            self._has_run(run)
        if error := run.error or ends_without(run.workers):
            raise error
        if run.bypassed:
            raise Broken(run.bypassed, ITS_OWN_THREADS)
        return run

    def _has_run(self, run: Run) -> None:
        self.runs += 1
        self.feeding.has_run(run)
        self.random_choice = self.random_choice or run.random_choice
        every = COLLECT_OFTEN if any(worker.order for worker in run.workers) else COLLECT_EVERY
        if self.runs % every == 0 or run.warming_up:
            garbage.collect(keep=self.keeps)

    def settled(self) -> None:
        """After the last run of a search. Raises Broken if that has left behind what no restore undoes."""
        for server in self.servers.values():
            server.settled()

    def forget_answers(self) -> None:
        """A server answers otherwise from now on."""
        self.opening.clear()
        if self.recording:
            self.recording = Recording(self.recording.merges)

    def until_known(self, run: Callable[[], T]) -> T:
        """What `run` returns. It begins again each time that something is seen which all runs have to know from their
        beginning."""
        while True:
            try:
                return run()
            except BeginsAgain:
                self.forget_answers()

    @contextmanager
    def unnoted(self) -> Iterator[None]:
        """Runs of what is found already: nothing is learned from them."""
        recording, learns = self.recording, self.learns
        self.recording, self.learns = None, False
        try:
            yield
        finally:
            self.recording, self.learns = recording, learns

    def in_memory_run(self, choose: Chooser) -> InMemoryRun | None:
        """An in-memory run at its beginning. None: too little is known for one."""
        if not self.opening or not self.recording or self.recording.useless:
            return None
        workers = [self.worker(index) for index in range(self.bounds.workers)]
        run = InMemoryRun(workers, self.opening, self.bounds, self.recording, choose)
        self.know(run)
        return run.copy()

    def know(self, run: World) -> None:
        for worker in run.workers:
            begins = self.all_begin or (self.bounds.twice and not self.one_by_one)
            if not begins and self.bounds.stands_for(worker.index) is not None:
                worker.dormant, worker.main.state = True, State.DONE
        run.until, run.looks, run.in_turns = self.until, self.looks, self.one_by_one
        run.longest, run.recording, run.counted = self.longest, self.recording, self.counted
        run.distinct_times, run.counting = self.distinct_times, self.counting

    def end_in_memory(self, run: InMemoryRun) -> None:
        """The run is over. Raises Unanswered if it has to be executed to be judged."""
        run.endings = [ending_of(worker) for worker in run.workers]
        if not run.cut:
            self.judge(run)
        for worker in run.workers:
            worker.sessions.clear()

    def _begin(self, run: Run, real: Collection[int] | None) -> None:
        """The workers in `real` (None: all) run their real code, each in its thread. The others are replayed."""
        played = real is not None and not real
        if not played and self.recording and not self.recording.useless:
            run.recorder = Recorder(self.recording, run)
        for worker, thread in zip(run.workers, self.threads, strict=True):
            if real is None or worker.index in real:
                thread.prepare(self.job(run, worker))
            else:
                assert self.recording
                worker.main.steps = replayed(run, worker.main, self.recording)
        attach(Here(run, run.workers[0].main, inside=1))  # this thread may talk to the servers
        try:
            run.play() if played else run.begin()
        finally:
            attach(None)

    def worker(self, index: int) -> WorkerProcess:
        worker = WorkerProcess(chr(ord("A") + index), index, offset=self.ahead)
        worker.chance.salt = self.salt
        thread = self.threads[index]
        worker.tasks.append(Task(worker.name, worker, main=True, thread=thread.thread, go=thread.begin))
        return worker

    def job(self, run: Run, worker: WorkerProcess) -> Callable[[], None]:
        def job() -> None:
            attach(Here(run, worker.main))
            try:
                if not run.ending:
                    pending.hear(run, worker.main, worker.main.heard)
                    run.error = run.error or (self.memory.begins(worker.index) if self.memory else None)
                    with noting():
                        worker.result = self.system.work(worker.index)
            except Halt:
                worker.halted = True
            except BaseException as error:  # noqa: BLE001  (what a worker raises is its answer)
                worker.error = words_of(error)
            try:
                run.finished(worker.main)
            finally:
                attach(None)

        return job

    # -- after a run ----------------------------------------------------------------------------------------------

    def _end(self, run: Run) -> None:
        """End every thread that still stands, one after the other. Bring all sessions back to idle."""
        run.ending = True
        logs, logging.root.manager.disable = logging.root.manager.disable, logging.CRITICAL
        try:
            # a thread that its caller waits for may hold what the caller needs to end: a connection's lock
            for task in sorted(run.tasks, key=lambda task: task.main):
                self.end_thread(run, task)
        finally:
            logging.root.manager.disable = logs
        used: dict[str, list[Any]] = {}
        for worker in run.workers:
            if self.recording and run.recorder:
                self.recording.keep_connections(worker)
            for name, sessions in worker.sessions.items():
                used.setdefault(name, []).extend(sessions)
            worker.sessions.clear()  # worker and threads refer to each other: only the collector frees them
            for task in worker.tasks:
                task.uses.clear()
        for name, all_of_them in used.items():
            _settle(self.servers[name], all_of_them)
        for worker, thread in zip(run.workers, self.threads, strict=True):
            if not worker.main.steps and (worker.halted or worker.error or worker.struck):
                thread.give(lambda index=worker.index: self.system.settle(index))  # type: ignore[misc]
                thread.finish()
        if lost := next((task for task in run.tasks if task.swallows), None):
            raise swallows(lost)

    def end_thread(self, run: Run, task: Task) -> None:
        """A thread that does not come to its end is left where it is. From now on another one takes its place. One that
        hangs in a server comes to its end if that lets it go."""
        if task.worker.dormant:
            return
        if task.steps:
            task.steps.close()
        if task.steps or task.coroutine:  # it ends with the thread of its loop
            return
        hangs = run.hung is task
        if task.state is not State.DONE and not hangs:
            task.go.release()
        within = END_WITHIN if not hangs or self._is_let_go(task) else HUNG_WITHIN
        if not task.main:
            until = _now() + within
            while task.thread and task.thread.is_alive() and not task.swallows and _now() < until:
                task.thread.join(LOOK_EVERY)
            WorkerThread.left += bool(task.thread and task.thread.is_alive())
        elif not self.threads[task.worker.index].finish(within, task):
            WorkerThread.left += 1
            self.threads[task.worker.index] = WorkerThread()
            if not (hangs or task.swallows):
                raise hang(task)

    def _is_let_go(self, task: Task) -> bool:
        """Has it waited for a server? It goes on now."""
        found = False
        for name, sessions in task.worker.sessions.items():
            found |= self.servers[name].lets_go([each for each, user in sessions.items() if user is task])
        return found


def _settle(server: Server, sessions: Sequence[Any]) -> None:
    """A worker that has returned may have left a lock or a transaction behind. Raises RuntimeError if one is left."""
    if isinstance(server, PostgresServer):
        server.end_sessions(sessions)
        mend(sessions)
        renew(sessions)
        server.prove_idle(sessions)
    elif isinstance(server, MariaDBServer):
        server.settle(sessions)
    elif isinstance(server, RedisServer):
        for session in sessions:
            connections.reset(session)
