"""Runs of one worker's real code that is fed with what is known (runs/fed_run.py): begun, ended, cleaned up after."""

from __future__ import annotations

import logging
from typing import Any

from lost_update_lab.gates.postgres.fed import PlayedConnections
from lost_update_lab.gates.redis.fed import ConnectionsBefore
from lost_update_lab.model.errors import BeginsAgain
from lost_update_lab.runs.fed_run import FedRecorder, FedRun, Prescribes, chosen, remembered
from lost_update_lab.runs.place import Active, Here, attach
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule.world import Chooser
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer
from lost_update_lab.servers.redis.server import RedisServer


class Feeding:
    """What a harness does to feed a worker. `runs`: how often it did."""

    def __init__(self, harness: Any) -> None:
        self.harness, self.runs = harness, 0
        server = harness.servers.get(POSTGRES)
        self._played = PlayedConnections(server) if isinstance(server, PostgresServer) else None
        known = (PostgresServer, RedisServer)
        self._can_be = harness.bounds.fed and all(
            isinstance(each, known) for each in harness.servers.values()
        )

    def has_run(self, run: Run) -> None:
        """A run on the servers is over. A worker with an event loop cannot be fed."""
        self._can_be = self._can_be and not run.loops

    def feed(self, choose: Chooser, watched: dict[bytes, int], index: int, path: Prescribes = chosen) -> bool:
        """Run the code of worker number `index`, along `path`, and then as `choose` decides. Returns whether it came to
        something new, which the recording then knows. Raises BeginsAgain."""
        harness, recording = self.harness, self.harness.recording
        if not self._can_be or not recording or not recording.replays or not harness.opening:
            return False
        self.runs += 1
        harness.system.reset(())
        workers = [harness.worker(each) for each in range(harness.bounds.workers)]
        run = FedRun(
            workers,
            {name: server.copy() for name, server in harness.opening.items()},
            harness.servers,
            harness.bounds,
            choose,
            path,
        )
        run.watched = watched
        harness.know(run)
        run.memory, run.cached_names = harness.memory, harness.cached_names
        run.recorder = recorder = FedRecorder(recording, run)
        Active.run = run
        try:
            self._begin(run)
            try:
                self._run(run, index)
            finally:
                Active.run = None
                self._end(run, index)
        except BeginsAgain:
            raise
        except Exception:  # noqa: BLE001  (a run on the servers will tell what that is)
            return recorder.learned > 0
        if isinstance(run.error, BeginsAgain):
            raise run.error
        return recorder.learned > 0

    def _begin(self, run: FedRun) -> None:
        """The connections that the worker has are played."""
        for server in run.at_gates.values():
            if isinstance(server, RedisServer):
                server.watches_of.begin()  # those of the last run on the servers are over
        run.before, run.played = ConnectionsBefore(), self._played
        if self._played:
            self._played.begin()

    def _run(self, run: FedRun, index: int) -> None:
        for worker, thread in zip(run.workers, self.harness.threads, strict=True):
            if worker.index == index:
                thread.prepare(self.harness.job(run, worker))
            else:
                worker.main.steps = remembered(run, worker.main)
        attach(Here(run, run.workers[0].main, inside=1))
        try:
            run.begin()
        finally:
            attach(None)

    def _end(self, run: FedRun, index: int) -> None:
        if run.hung:  # it waits for something that is not played: it would do so each time
            self._can_be = False
            if self._played:
                self._played.let_go()
        run.ending = True
        for each in run.workers:
            each.sessions.clear()
        logs, logging.root.manager.disable = logging.root.manager.disable, logging.CRITICAL
        worker = run.workers[index]
        try:
            for task in run.tasks:
                self.harness.end_thread(run, task)
        finally:
            logging.root.manager.disable = logs
            run.before.end()
            if self._played:
                self._played.end()
        thread = self.harness.threads[index]
        if worker.halted or worker.error or worker.struck:
            thread.give(lambda: self.harness.system.settle(index))
            thread.finish()

    def close(self) -> None:
        if self._played:
            self._played.close()
