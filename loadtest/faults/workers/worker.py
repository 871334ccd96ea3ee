"""A worker: a real process that posts to a book, records each operation before and after it, and obeys a pipe.

    judge → worker   ("book", id, folder, env, sentinels)  ("post", count, think, gated)  ("go", until, most)
                     ("call", name, …)                     ("pulse",)
    worker → judge   ("inside", facts)                     ("done", facts)                ("raised", text)

`strategy.think()` sends "inside": the worker has read, has not written, and holds what its strategy holds. It stays
there until "go". If "go" arrives later than `until` (by the monotonic clock; without it, any time will do), the worker
leaves without a write. It does so too if its pulse (pulse.py) was later than `most` seconds. Its other threads (a
watchdog) run meanwhile. It dies with the process that forked it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from loadtest.faults.workers import deeds
from loadtest.faults.workers.desk import Desk

PR_SET_PDEATHSIG = 1


def _quietly(_: object) -> None:
    """Print nothing for a renewal thread that ends with an error because its server was killed: the books show the
    consequences."""


def main(pipe: Connection) -> None:
    """Run the process until the pipe ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the judge
    signal.signal(signal.SIGUSR1, signal.default_int_handler)  # waiter-interrupted: KeyboardInterrupt
    threading.excepthook = _quietly
    from ledger.stores.sql import SqlStore
    from ledger.strategies.base import Strategy

    if "FAKETIME_TIMESTAMP_FILE" in os.environ:
        time.sleep = deeds.sleep  # type: ignore[assignment]
    desk = Desk(pipe)
    deeds.gate_between_accounts(desk, Strategy, SqlStore)
    Strategy.think = lambda strategy: desk.think(strategy)  # type: ignore[method-assign,assignment]  # noqa: PLW0108
    with suppress(EOFError, OSError):
        while True:
            what, *told = pipe.recv()
            try:
                pipe.send(("done", _obey(desk, what, told)))
            except KeyboardInterrupt:
                pipe.send(("raised", "KeyboardInterrupt"))
            except Exception as error:  # noqa: BLE001  (the judge decides)
                pipe.send(("raised", f"{type(error).__name__}: {error}"))


def _obey(desk: Desk, what: str, told: list[Any]) -> Any:
    if what == "book":
        return desk.open(*told)
    if what == "post":
        return desk.post(*told)
    if what == "call":
        return getattr(deeds, told[0])(desk, *told[1:])
    return None
