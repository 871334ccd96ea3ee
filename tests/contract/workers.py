"""Processes that take locks: to be stopped, killed, interrupted."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Self

from redis import Redis

_context = multiprocessing.get_context("forkserver")
PATIENCE = 60.0


def asks_a_server(factory: Any) -> bool:
    return bool(inspect.signature(factory).parameters.keys() & {"redis", "redis_nodes"})


class Worker:
    """One process with one lock object. It does one thing at a time, in its main thread."""

    def __init__(self) -> None:
        self._pipe, theirs = _context.Pipe()
        self._process = _context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._asks_a_server = True

    def takes_on(self, factory: Any, *order: Any) -> None:
        self._asks_a_server = asks_a_server(factory)
        self.asks("build", factory, *order)

    def begins(self, action: str, *args: Any) -> None:
        self._pipe.send((action, args))

    def answers(self, patience: float = PATIENCE) -> Any:
        """Return its answer. Raises TimeoutError, or EOFError if it has ended. What the lock raised becomes a
        RuntimeError with its text."""
        if not self._pipe.poll(patience):
            raise TimeoutError("the process does not answer")
        try:
            kind, value = self._pipe.recv()
        except EOFError:
            self._process.join(PATIENCE)
            raise EOFError(f"the process has ended with code {self._process.exitcode}") from None
        if kind == "raised":
            raise RuntimeError(value)
        return value

    def asks(self, action: str, *args: Any) -> Any:
        self.begins(action, *args)
        return self.answers()

    def waits(self, admin: Redis, patience: float = PATIENCE) -> None:
        """Return once the process waits for the lock: when the server shows it (blocked, subscribed, or polling) and it
        sleeps. For a lock without a server: when it sleeps and has no answer. (An interrupt that strikes a finalizer
        is swallowed by Python, and redis-py's connections leave some behind.)"""
        pid, first, before, deadline = f"pid-{self.pid}", None, 0, time.monotonic() + patience
        if not self._asks_a_server:
            while _state(self.pid) != "S" or self._pipe.poll(0.02):
                pass
            return
        while time.monotonic() < deadline and not self._pipe.poll():
            clients = [each for each in admin.client_list() if each["name"] == pid]
            commands = sum(int(each.get("tot-cmds", 0)) for each in clients)
            first = commands if first is None and clients else first
            polls = first is not None and commands >= first + 8  # more than a handshake has
            quiet = commands == before and any(map(_is_woken, clients))
            if (polls or quiet) and _state(self.pid) == "S":
                return
            before = commands
            time.sleep(0.005)
        raise TimeoutError("the process does not wait")

    @property
    def pid(self) -> int:
        assert self._process.pid
        return self._process.pid

    def signal(self, signum: int) -> None:
        os.kill(self.pid, signum)

    def stops(self) -> None:
        self.signal(signal.SIGSTOP)
        while _state(self.pid) != "T":
            time.sleep(0.001)

    def goes_on(self) -> None:
        self.signal(signal.SIGCONT)

    def dies(self) -> None:
        if not self._pipe.closed:
            self._process.kill()
            self._process.join(PATIENCE)
            self._pipe.close()


class Workers:
    """Keeps one process ready, because starting one takes longer than most cases. Cases may run side by side."""

    def __init__(self) -> None:
        self._ready: Future[Worker] | None = None
        self._starter = ThreadPoolExecutor(max_workers=1)
        self._one_at_a_time = threading.Lock()

    def __enter__(self) -> Self:
        _context.set_forkserver_preload(["tests.contract.site", "tests.contract.quiet"])
        self._ready = self._starter.submit(Worker)
        return self

    def hire(self, *order: Any) -> Worker:
        """Return a process that has built the lock. The caller must end it (`dies`)."""
        with self._one_at_a_time:
            assert self._ready is not None
            worker, self._ready = self._ready.result(), self._starter.submit(Worker)
        worker.takes_on(*order)
        return worker

    def __exit__(self, *_: object) -> None:
        if self._ready is not None:
            self._ready.result().dies()
        self._starter.shutdown()


def _is_woken(client: dict[str, Any]) -> bool:
    """Whether this connection waits for news. One whose last command was a release has only kept its subscription."""
    return "b" in client["flags"] or (int(client["sub"]) > 0 and client["cmd"] != "delifeq")


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def _counts(lock: Any, path: str, key: str, sections: int, processes: int) -> None:
    """In each section, read a number and write it back one higher. The processes begin together."""
    with Redis(unix_socket_path=path) as redis:
        redis.incr(f"{key}ready")
        while int(redis.get(f"{key}ready") or 0) < processes:
            time.sleep(0.001)
        for _ in range(sections):
            with lock:
                number = int(redis.get(key) or 0)
                time.sleep(0.001)  # the business's own work
                redis.set(key, number + 1)


def _work(pipe: Connection) -> None:
    """Run the process: build a lock, then do what the pipe orders, until the pipe ends."""
    from tests.contract.gates import Gate
    from tests.contract.quiet import takes
    from tests.contract.site import built

    lock: Any = None
    with suppress(EOFError, OSError):
        while True:
            action, args = pipe.recv()
            try:
                if action == "build":
                    factory, name, site, settings = args
                    site = site.named(f"pid-{os.getpid()}")
                    lock, value = built(factory, name, site, Gate(), **settings), None
                elif action == "takes":
                    value = any(
                        takes(lock, 1.0) for _ in range(20)
                    )  # a machine that stands still misses only some

                elif action == "counts":
                    value = _counts(lock, *args)
                else:
                    value = getattr(lock, action)(*args)
                pipe.send(("done", value if isinstance(value, bool | int | float | None) else None))
            except KeyboardInterrupt:
                pipe.send(("done", "interrupted"))
            except Exception as error:  # noqa: BLE001
                pipe.send(("raised", f"{type(error).__name__}: {error}"))
