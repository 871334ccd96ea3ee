"""An actor: a process of its own that takes and releases a lock when a test says so, and that can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from locks.fair_lock import FairLock

PATIENCE = 60.0  # seconds: how long a test waits for what must happen


def eventually(true: Callable[[], Any], what: str) -> None:
    """Wait until `true()` says so; the test fails if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)


def client(url: str, **options: Any) -> Redis:
    return Redis.from_url(url, **{"retry": Retry(NoBackoff(), 0)} | options)


class Actor:
    """`actor.tell("acquire", timeout=1)` starts it, `actor.answer()` waits for what came of it."""

    def __init__(self, url: str, name: str, **options: Any) -> None:
        context = multiprocessing.get_context("fork")
        self._mine, theirs = context.Pipe()
        self._process = context.Process(target=_act, args=(theirs, url, name, options), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, verb: str, **arguments: Any) -> Self:
        self._mine.send((verb, arguments))
        return self

    def answer(self) -> Any:
        """(what the lock's method returned or the error's class name, token, number, time.monotonic())"""
        assert self._mine.poll(PATIENCE), "no answer from the actor"
        return self._mine.recv()

    def silent(self) -> bool:
        return not self._mine.poll(0)

    def signal(self, number: int) -> None:
        os.kill(self._process.pid or 0, number)
        if number == signal.SIGKILL:
            self._process.join()

    def end(self) -> None:
        if self._process.is_alive():
            self.signal(signal.SIGKILL)
        self._mine.close()


def _act(pipe: Connection, url: str, name: str, options: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    lock = FairLock(name, redis=client(url), **options)
    while True:
        verb, arguments = pipe.recv()
        number = token = None
        try:
            said = getattr(lock, verb)(**arguments)
            number, token = lock.fencing_token, lock.token
        except BaseException as error:  # noqa: BLE001  a test wants to know about every one
            said = type(error).__name__
        pipe.send((said, token, number, time.monotonic()))
