"""The judge's ends of the pipes to the workers, and the pool from which it hires them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadtest.faults.workers.zygote import Zygote


class Dead(Exception):
    """The worker has ended, and will not answer any more."""


class CrewWorker:
    """One worker process."""

    def __init__(self, zygote: Zygote, kind: str = "") -> None:
        self._zygote, self.kind = zygote, kind
        self.pid, self.pipe = zygote.fork()
        self.exitcode: int | None = None
        self.busy = False
        self.answer: Any = None
        self.inside: dict[str, Any] | None = None

    @property
    def lives(self) -> bool:
        return self.exitcode is None and self.state() not in "ZX"

    def begins(self, *order: Any) -> None:
        """Give an order. `hears` returns the answers."""
        self.busy, self.answer, self.inside = True, None, None
        self.pipe.send(order)

    def tells(self, *word: Any) -> None:
        self.pipe.send(word)

    def hears(self, seconds: float) -> Any:
        """Return the next message (kind, value), or None if none comes in time. Raises Dead."""
        try:
            if not self.pipe.poll(max(0.0, seconds)):
                return None
            kind, value = self.pipe.recv()
        except (EOFError, OSError) as error:
            self.busy = False
            raise Dead(str(self.pid)) from error
        if kind == "inside":
            self.inside = value
        elif kind in ("done", "raised"):
            self.busy, self.answer = False, value
        return kind, value

    def asks(self, *order: Any, seconds: float = 20.0) -> Any:
        """Give an order and return its result. Raises TimeoutError and RuntimeError."""
        self.begins(*order)
        heard = self.hears(seconds)
        if heard is None:
            raise TimeoutError(f"worker {self.pid} did not answer {order[0]!r} within {seconds:g} s")
        if heard[0] == "raised":
            raise RuntimeError(heard[1])
        return heard[1]

    def finishes(self, until: float) -> bool:
        """Wait until the (monotonic) time `until` for the end of its order. True: the order, or the worker, ended."""
        with suppress(Dead):
            while self.busy:
                if self.hears(until - time.monotonic()) is None:
                    return False
        return True

    def signal(self, signum: int) -> None:
        os.kill(self.pid, signum)

    def stop(self) -> None:
        """Send SIGSTOP, and return once the kernel reports that it is stopped."""
        self.signal(signal.SIGSTOP)
        while self.state() not in "TZX":
            time.sleep(0.001)

    def state(self) -> str:
        """The state in /proc: R, S, T (stopped), Z …"""
        with suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return "X"

    def die(self) -> None:
        """Send SIGKILL, and wait for its end."""
        if self.exitcode is None:
            self.signal(signal.SIGKILL)  # its process id is not reused before it is reaped
            self.exitcode = self._zygote.reap(self.pid)
        self.busy = False
        self.pipe.close()


class Pool:
    """Workers that stand ready, because starting one takes longer than most cells. Thread-safe."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        """`env`: for its workers, in addition to this process's own (a clock that can be moved)."""
        self._zygote = Zygote(env)
        #: a cell takes a turn while it needs the processor, and not just time
        self.turn = threading.BoundedSemaphore(4)
        self._idle: dict[str, list[CrewWorker]] = defaultdict(list)
        self._all: set[CrewWorker] = set()
        self._gate = threading.Lock()

    def hire(self, kind: str = "") -> CrewWorker:
        """`kind`: names work that leaves something behind in the worker which the next work of its kind reuses."""
        with self._gate:
            while self._idle[kind]:
                worker = self._idle[kind].pop()
                if worker.lives:
                    return worker
            worker = CrewWorker(self._zygote, kind)
            self._all.add(worker)
            return worker

    def give_back(self, worker: CrewWorker, *, clean: bool) -> None:
        """Take back an idle worker that no hazard struck. End any other worker."""
        if clean and not worker.busy and worker.lives:
            with self._gate:
                self._idle[worker.kind].append(worker)
            return
        worker.die()
        with self._gate:
            self._all.discard(worker)

    def dismiss(self) -> None:
        """End the idle workers of every special kind: what they keep open would be in the way of other hazards."""
        with self._gate:
            special = [worker for kind, idle in self._idle.items() if kind for worker in idle]
            self._idle = defaultdict(list, {"": self._idle[""]})
            self._all.difference_update(special)
        for worker in special:
            worker.die()

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        for worker in list(self._all):
            with suppress(Exception):
                worker.die()
        self._all.clear()
        self._idle.clear()
        self._zygote.close()
