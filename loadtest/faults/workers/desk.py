"""A worker's desk: its book, its journal, its pipe to the judge, and how it waits between read and write."""

from __future__ import annotations

import ctypes
import os
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from loadtest.faults.workers.pulse import Pulse
from loadtest.faults.workers.way import WayToServers

Legs = tuple[tuple[str, int], ...]


class Overdue(BaseException):
    """The judge released the worker when its lease may already have ended. A BaseException, so that no `except
    Exception` in a strategy or in a user's lock catches it."""


class Starved(BaseException):
    """The machine gave this process too little time to renew its lease. Likewise a BaseException."""


class Desk:
    """What the process works with."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe, self.way = pipe, WayToServers()
        self.gated = False
        self.halfway = False
        self.lines = 0  # lines of an import until it stops
        self.stale: list[float] = []  # when it read from a replica
        self.span = (0.0, 0.0)
        self.book: Any = None
        self.sign = 1
        self.journal: Any = None
        self.chance = random.Random()  # noqa: S311  (no secret)
        self.threads: set[threading.Thread] = set()
        self.crowd: ThreadPoolExecutor | None = None
        self.pulse: Pulse | None = None

    def open(
        self,
        book: str,
        folder: str,
        env: dict[str, str],
        sentinels: list[Any],
        seed: int,
        number: int,
        withdraws: bool,
    ) -> None:
        """Open a book. `number`: the worker's number in its cell, which with `seed` seeds its random numbers.
        `withdraws`: post withdrawals, not deposits."""
        from django.db import close_old_connections, connection

        from ledger.models import Book
        from loadtest.history.journal import Journal

        self.way.take(env, sentinels)
        close_old_connections()  # the database may have been restarted since
        os.environ["PGAPPNAME"] = book  # for connections to come, and for this one: see sight.deadlocks
        connection.ensure_connection()
        self.name_session()
        self.chance.seed(f"{seed}:{number}")
        random.seed(f"{seed}:{number}:strategy")
        self.book = Book.objects.get(pk=book)
        self.sign = -1 if withdraws else 1
        if self.journal:
            self.journal.close()
        self.journal = Journal(folder)
        self.threads = set(threading.enumerate())

    def name_session(self) -> None:
        """Name this thread's connection, if it has one, after the book."""
        from django.db import connection

        if connection.connection:
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('application_name', %s, false)", [os.environ["PGAPPNAME"]])

    def think(self, _strategy: Any) -> None:
        if self.lines and threading.current_thread() is threading.main_thread():
            self.lines -= 1
            self.gated = self.lines == 0
        if self.gated and threading.current_thread() is threading.main_thread():
            self.gated = False
            self.stand()
        else:
            time.sleep(self.chance.uniform(*self.span))

    def stand(self) -> None:
        """Stay inside until the judge says "go". Raises Overdue if that comes too late. With a pulse, raises Starved if
        a beat of it was later than the judge allows."""
        self.pipe.send(("inside", facts := self.facts()))
        pulse = None
        while (told := self.pipe.recv())[0] != "go":
            if told == ("silence",):
                self.pipe.send(("silenced", silence(self.threads)))
            elif told == ("pulse",):
                pulse = Pulse(facts["at"])
                self.threads.add(pulse.thread)
        until, most = (*told[1:], None, None)[:2]
        late = pulse.end() if pulse else 0.0
        if until is not None and (beyond := time.monotonic() - until) > 0:
            raise Overdue(f"{beyond:.2f} s too late")
        if most is not None and late > most:
            raise Starved(f"a beat came {late:.2f} s late")

    def facts(self) -> dict[str, Any]:
        from django.db import connections

        connection = connections["default"].connection
        return {
            "pid": os.getpid(),
            "at": time.monotonic(),
            "session": connection.info.backend_pid if connection and not connection.closed else None,
            "threads": self.left_over(),
        }

    def left_over(self) -> list[str]:
        """Return the names of the threads that postings to this book have started."""
        return [each.name for each in threading.enumerate() if each not in self.threads]

    def post(
        self, count: int, think: tuple[float, float], lease: float, gated: bool, at: float = 0.0
    ) -> dict[str, Any]:
        """Post `count` times under `lease`, starting at the time `at`, in seconds since the epoch."""
        self.span, self.gated = think, gated
        self.book.settings["lease"] = lease
        time.sleep(max(0.0, at - time.time()))
        seen = [self.one() for _ in range(count)]
        self.gated = False
        return {"outcomes": seen, "threads": self.left_over()}

    def one(self, legs: Legs | None = None) -> str:
        """Post once: `legs`, or else a deposit (a withdrawal, if the cell withdraws). Return its outcome."""
        from django.db import close_old_connections

        from ledger.books import post
        from ledger.posting import Busy, Line, Posting, Refused
        from ledger.reconcile import ClientOutcome

        with suppress(Exception):
            close_old_connections()  # as at the start of a request, so that no broken session is reused
        legs = legs or (("A0001", self.sign * self.chance.randint(1, 10_000)),)
        key = uuid.uuid4().hex
        self.journal.invoke(key, legs, f"worker {os.getpid()}")
        outcome, told, more = ClientOutcome.INFO, "", {}
        try:
            more = {"retries": post(self.book, Posting(key, tuple(Line(*leg) for leg in legs))).retries}
            outcome = ClientOutcome.OK
        except (Refused, Busy) as error:
            outcome, told, more = ClientOutcome.FAIL, str(error), {"busy": isinstance(error, Busy)}
        except KeyboardInterrupt:
            told = "KeyboardInterrupt: interrupted"
        except (Overdue, Starved) as error:
            told = f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001  (a user's lock may raise anything: the outcome is unknown)
            told = f"{type(error).__name__}: {error}"
        self.journal.complete(key, outcome, error=told, **more)
        return told or str(outcome.value)


def silence(threads: set[threading.Thread]) -> list[str]:
    """Raise SystemExit in every thread that is not in `threads`, as a bug in a renewal thread would."""
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
