"""A worker: a real process that posts to a book, notes each operation before and after it, and obeys a pipe.

    judge → worker   ("book", id, folder, env, sentinels)  ("post", count, think, gated)  ("go",)  ("call", name, …)
    worker → judge   ("inside", facts)                     ("done", facts)                ("raised", text)

"inside" comes out of `strategy.think()`: it has read, it has not written, it holds what its strategy holds. It
stays there until "go". Its other threads (a watchdog) run meanwhile. It dies with the process that forked it.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import threading
import time
import uuid
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

PR_SET_PDEATHSIG = 1


class Desk:
    """What the process works with."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.gated = False
        self.span = (0.0, 0.0)
        self.book: Any = None
        self.journal: Any = None
        self.chance = random.Random()  # noqa: S311  (no secret)
        self.threads: set[threading.Thread] = set()

    def open(self, book: str, folder: str, env: dict[str, str], sentinels: list[Any], seed: int) -> None:
        from django.db import close_old_connections

        from ledger.models import Book
        from loadtest.journal import Journal

        _connect_to(env, sentinels)
        close_old_connections()  # the database may have been restarted since
        self.chance.seed(f"{seed}:{os.getpid()}")
        self.book = Book.objects.get(pk=book)
        self.journal = Journal(folder)
        self.threads = set(threading.enumerate())

    def think(self, _strategy: Any) -> None:
        if self.gated and threading.current_thread() is threading.main_thread():
            self.gated = False
            self.pipe.send(("inside", self.facts()))
            while (told := self.pipe.recv()) != ("go",):
                if told == ("silence",):
                    self.pipe.send(("silenced", silence(self.threads)))
        else:
            time.sleep(self.chance.uniform(*self.span))

    def facts(self) -> dict[str, Any]:
        from django.db import connections

        connection = connections["default"].connection
        return {
            "pid": os.getpid(),
            "at": time.time(),
            "session": connection.info.backend_pid if connection and not connection.closed else None,
            "threads": [each.name for each in threading.enumerate() if each not in self.threads],
        }

    def post(
        self, count: int, think: tuple[float, float], lease: float, gated: bool, at: float = 0.0
    ) -> dict[str, Any]:
        """Post `count` deposits under `lease`, from the time `at`, in seconds since the epoch."""
        self.span, self.gated = think, gated
        self.book.settings["lease"] = lease
        time.sleep(max(0.0, at - time.time()))
        seen = [self.one() for _ in range(count)]
        self.gated = False
        return {"outcomes": seen}

    def one(self) -> str:
        from django.db import close_old_connections

        from ledger.books import post
        from ledger.posting import Busy, Line, Posting, Refused
        from ledger.reconcile import Outcome

        with suppress(Exception):
            close_old_connections()  # as at the start of a request: a broken session is not used again
        key, amount = uuid.uuid4().hex, self.chance.randint(1, 10_000)
        self.journal.invoke(key, [("A0001", amount)], f"worker {os.getpid()}")
        outcome, told, more = Outcome.INFO, "", {}
        try:
            more = {"retries": post(self.book, Posting(key, (Line("A0001", amount),))).retries}
            outcome = Outcome.OK
        except (Refused, Busy) as error:
            outcome, told, more = Outcome.FAIL, str(error), {"busy": isinstance(error, Busy)}
        except KeyboardInterrupt:
            told = "KeyboardInterrupt: interrupted"
        except Exception as error:  # noqa: BLE001  (whatever a stranger's lock raises: it is unknown)
            told = f"{type(error).__name__}: {error}"
        self.journal.complete(key, outcome, error=told, **more)
        return told or str(outcome.value)

    # -- what hazards ask for by ("call", name, …) ---------------------------------------------------------

    def release_foreign(self) -> str:
        """Release the account's lock from a fresh object that never took it."""
        lock = self.lock()
        try:
            lock.release() if hasattr(lock, "release") else lock.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001  (to refuse is its right)
            return f"refused it: {type(error).__name__}: {error}"
        return "said nothing"

    def take_and_die(self) -> str:
        """Let a thread take the lock, read, and end without a release, as code without a `finally` does."""
        taken: list[Any] = []

        def business() -> None:
            lock = self.lock()
            lock.__enter__()
            taken.append(lock)

        thread = threading.Thread(target=business, name="business")
        thread.start()
        thread.join(10)
        return f"thread ended: {not thread.is_alive()}, lock taken: {bool(taken)}"

    def lock(self) -> Any:
        from ledger.resources import resources
        from ledger.strategies import Settings, find
        from locks import build

        keywords = Settings.of(self.book.settings).lock_keywords()
        factory = find(self.book.strategy).factory  # type: ignore[attr-defined]
        return build(factory, f"{self.book.pk}:A0001", **resources(self.book), **keywords)


def silence(threads: set[threading.Thread]) -> list[str]:
    """Raise SystemExit in every thread that is not of `threads`: what a bug in a renewal thread does to it."""
    struck = []
    for each in threading.enumerate():
        if each not in threads and each is not threading.current_thread() and each.ident:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(each.ident), ctypes.py_object(SystemExit)
            )
            struck.append(each)
    for each in struck:
        each.join(5)
    return [each.name for each in struck if not each.is_alive()]


def _connect_to(env: dict[str, str], sentinels: list[Any]) -> None:
    from django.conf import settings

    from ledger import resources

    os.environ.update(env)
    resources.redis_client.cache_clear()
    if "REDIS_NODES" in env:
        settings.REDIS_NODES = env["REDIS_NODES"].split(",")
    if "REDIS_URL" in env:
        settings.CACHES["default"]["LOCATION"] = env["REDIS_URL"]
    if sentinels:
        resources.Redis = Following  # type: ignore[misc,assignment]
        Following.sentinels = sentinels


class Following:
    """Stands where the ledger makes its Redis client: one that asks the sentinels for the primary."""

    sentinels: list[Any] = []

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Any:
        from redis.sentinel import Sentinel

        from loadtest.servers.replication import NAME

        return Sentinel(cls.sentinels, socket_timeout=1).master_for(NAME, socket_timeout=4, **options)


def main(pipe: Connection) -> None:
    """The process, until the pipe ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the judge
    signal.signal(signal.SIGUSR1, signal.default_int_handler)  # waiter-interrupted: KeyboardInterrupt
    from ledger.strategies.base import Strategy

    desk = Desk(pipe)
    Strategy.think = lambda strategy: desk.think(strategy)  # type: ignore[method-assign]  # noqa: PLW0108
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
        return getattr(desk, told[0])(*told[1:])
    return None
