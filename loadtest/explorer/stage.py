"""The stage: gates installed, servers known, one thread kept for each worker. Runs schedules one after another."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType, TracebackType
from typing import Any, Self

from loadtest.explorer.bounds import Bounds
from loadtest.explorer.endless import Broken
from loadtest.explorer.gates import clocks, psycopg, redis, redis_clock, redis_connections, threads
from loadtest.explorer.gates.here import Active, Here, attach
from loadtest.explorer.gates.patch import Patches
from loadtest.explorer.options import Option
from loadtest.explorer.playing import player
from loadtest.explorer.recording import Recorder, Recording
from loadtest.explorer.run import Run
from loadtest.explorer.servers.base import Server
from loadtest.explorer.servers.postgres import PostgresServer
from loadtest.explorer.servers.redis import RedisServer
from loadtest.explorer.subject import Ending, Subject, words_of
from loadtest.explorer.tasks import Halt, State, Task, Worker

GATES: tuple[Callable[[Patches], None], ...] = (
    clocks.install,
    threads.install,
    psycopg.install,
    redis.install,
    redis_clock.install,
)
END_WITHIN = 20.0
COLLECT_EVERY = 100  # runs; a server has room for some hundred connections


class Hand:
    """The kept thread of one worker: it plays the worker's main thread in run after run."""

    def __init__(self, name: str) -> None:
        self.job: Callable[[], None] | None = None
        self.begin, self.done = threading.Lock(), threading.Lock()
        self.begin.acquire()
        self.done.acquire()
        self.thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        while True:
            self.begin.acquire()
            if self.job is None:
                return
            self.job()
            self.done.release()

    def give(self, job: Callable[[], None] | None) -> None:
        self.job = job
        self.begin.release()

    def finish(self) -> None:
        if not self.done.acquire(timeout=END_WITHIN):
            raise RuntimeError(f"worker {self.thread.name} did not end: its code swallows every exception")


class Stage:
    """A context manager. `servers`: real ones, used by nobody else meanwhile."""

    def __init__(
        self,
        subject: Subject,
        servers: Sequence[Server],
        bounds: Bounds,
        gates: Sequence[Callable[[Patches], None]] = (),
    ) -> None:
        self.subject, self.bounds, self.gates = subject, bounds, gates
        self.servers = {server.name: server for server in servers}
        self.patches = Patches()
        self.until = inf
        self.runs = 0
        #: does a worker look at a wall clock? Before a search this is found out (waiters.py)
        self.looks = False
        #: the longest lease or wait of the runs before the search, in µs
        self.longest = 0
        self.recording = Recording(bounds.workers) if bounds.recorded else None
        self.hands = [Hand(chr(ord("A") + index)) for index in range(bounds.workers)]

    def __enter__(self) -> Self:
        for install in (*GATES, *self.gates):
            install(self.patches)
        for server in self.servers.values():
            server.watch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.patches.undo()
        for index, hand in enumerate(self.hands):
            hand.give(lambda index=index: self.subject.leave(index))  # type: ignore[misc]
            hand.finish()
            hand.give(None)
            hand.thread.join(END_WITHIN)  # what is its own goes with it

    def run(
        self,
        choose: Callable[[Run, Sequence[Option]], int],
        watched: dict[bytes, int],
        trace: Callable[..., None] | None = None,
        known: Mapping[str, int] = MappingProxyType({}),
        played: bool = False,
        beaten: tuple[int, Callable[[Run], Option]] | None = None,
    ) -> Run:
        """Execute one schedule. Afterwards every thread has ended its work, every session is idle.
        `known`: up to which version of its contents each server is as it was in the run before. `played`: the
        commands come from the recording. Raises Unknown where it ends. `beaten`: how many decisions were taken
        before, and who says what they were."""
        self.subject.reset({name for name, server in self.servers.items() if server.changed})
        for server in self.servers.values():
            server.begin(known.get(server.name, -1))
        workers = [self._worker(index) for index in range(self.bounds.workers)]
        run = Run(workers, self.servers, self.bounds, choose, watched)
        run.trace, run.until = trace, self.until
        run.looks, run.longest = self.looks, self.longest
        run.beaten, run.follow = beaten or (run.beaten, run.follow)
        Active.run = run
        collects = gc.isenabled()
        gc.disable()  # when it collects, finalizers and callbacks run in whatever thread is at it, and may read clocks
        try:
            self._play(run) if played else self._live(run)
        finally:
            Active.run = None
            run.endings = [self._ending(run, worker) for worker in workers]
            self._end(run, played)
            if collects:
                gc.enable()
            self.runs += 1
            if self.runs % COLLECT_EVERY == 0:  # what a subject's own cycles hold
                gc.collect()
        if run.error:
            raise run.error
        if run.around:
            raise Broken(run.around)
        return run

    def _live(self, run: Run) -> None:
        """The real code, each worker in its thread."""
        if self.recording and not self.recording.useless:
            run.recorder = Recorder(self.recording, run)
        for worker, hand in zip(run.workers, self.hands, strict=True):
            hand.give(self._job(run, worker))
        run.begin()

    def _play(self, run: Run) -> None:
        """What the real code is known to do."""
        assert self.recording
        for worker in run.workers:
            worker.main.steps = player(run, worker.main, self.recording)
        attach(Here(run, run.workers[0].main, inside=1))  # this thread is no stranger to the servers
        try:
            run.play()
        finally:
            attach(None)

    def _worker(self, index: int) -> Worker:
        worker = Worker(chr(ord("A") + index), index, random=random.Random(index))  # noqa: S311
        worker.tasks.append(Task(worker.name, worker, main=True, thread=self.hands[index].thread))
        worker.node = self.recording.roots[index] if self.recording else None
        return worker

    def _job(self, run: Run, worker: Worker) -> Callable[[], None]:
        def job() -> None:
            attach(Here(run, worker.main))
            worker.main.go.acquire()
            try:
                if not run.ending:
                    run.heard(worker.main, worker.main.heard)
                    worker.result = self.subject.work(worker.index)
            except Halt:
                worker.halted = True
            except BaseException as error:  # noqa: BLE001  (what a worker raises is its answer)
                worker.error = words_of(error)
            try:
                run.finished(worker.main)
            finally:
                attach(None)

        return job

    def _ending(self, run: Run, worker: Worker) -> Ending:
        main = worker.main
        return Ending(
            worker.name,
            worker.result,
            worker.error,
            crashed=main.state is State.DEAD,
            alone=worker.alone,
            struck=worker.struck,
            waiting=main.state not in (State.DONE, State.DEAD),
        )

    # -- after a run ----------------------------------------------------------------------------------------------

    def _end(self, run: Run, played: bool) -> None:
        """Let every thread that still stands end, one after the other; bring all sessions back to idle."""
        run.ending = True
        for task in run.tasks:
            if task.steps:
                task.steps.close()
                continue
            if task.state is not State.DONE:
                task.go.release()
            if task.main:
                self.hands[task.worker.index].finish()
            elif task.thread:
                task.thread.join(END_WITHIN)
        for worker in run.workers:
            if self.recording and run.recorder:
                self.recording.keep_connections(worker)
            for name, sessions in worker.sessions.items():
                self._settle(name, list(sessions))
            worker.sessions.clear()  # it and its threads know each other: nothing goes before the collector comes
        for worker, hand in zip(run.workers, self.hands, strict=True):
            if not played and (worker.halted or worker.error or worker.struck):
                hand.give(lambda index=worker.index: self.subject.settle(index))  # type: ignore[misc]
                hand.finish()

    def _settle(self, name: str, sessions: list[Any]) -> None:
        server = self.servers[name]
        if isinstance(server, PostgresServer):
            server.end_sessions(
                sessions
            )  # whoever has returned may have left a lock behind, or a transaction
            server.mend(sessions)
            server.prove_idle(sessions)
        elif isinstance(server, RedisServer):
            for session in sessions:
                redis_connections.reset(session)
