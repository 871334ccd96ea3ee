"""A race by gates.

    with Race("no-lock") as race:
        a, b = race.worker("A", +10), race.worker("B", +20)
        a.runs_to("think")          # A has read and computed, and has not written
        b.runs_to("think")          # so has B
        a.finishes()
        b.finishes()
        race.books().lost_amount    # → 10

A point is a label that the code passes: `think`, `sleep`, `redis SET`, `sql UPDATE …`; a test names one by a
regular expression that matches its beginning. No sleep decides anything.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any, Self
from unittest.mock import patch
from weakref import WeakSet

from redis import Redis

from ledger.books import open_book
from ledger.posting import Line, Posting
from ledger.reconcile import Books, ClientOperation, ClientOutcome
from ledger.reconcile_stored import books_of
from ledger.stores import store_of
from ledger.writer.candidates import dismiss
from tests.ledger.race.worker import Worker, here

_sleep = time.sleep
_execute_command = Redis.execute_command
_told_to_end: WeakSet[threading.Thread] = WeakSet()


class Race:
    """Workers on a book of its own, with the accounts `A` and `B` of 100 each. A lease of 60 s ends when a test ends
    it, not because the machine stood still. On leaving, every thread has ended and every lock of a dead worker is
    gone with its book."""

    def __init__(
        self, strategy: str, *, store: str = "postgres", floor: int | None = None, **settings: Any
    ) -> None:
        unhurried = {
            "think": [0, 0],
            "backoff": [0.001, 0.001],
            "poll": 0.005,
            "retries": 5000,
            "lease": 60.0,
        }
        values = {**unhurried, **settings}
        accounts = [("A", 100, floor), ("B", 100, floor)]
        self.book = open_book(strategy, accounts, store=store, values=values, trusted=True)
        self.workers: list[Worker] = []
        self._patches = [patch("time.sleep", _slept), patch.object(Redis, "execute_command", _executed)]

    def worker(self, name: str, amount: int, to: str = "A", description: str = "") -> Worker:
        """Return a worker that will post `amount` to the account `to`."""
        return self.poster(name, Posting(f"key-{name}", (Line(to, amount),), description))

    def poster(self, name: str, posting: Posting) -> Worker:
        worker = Worker(self.book, name, posting)
        self.workers.append(worker)
        return worker

    def balance(self, account: str = "A") -> int:
        return store_of(self.book).read(Posting("", (Line(account, 0),)))[account].balance

    def books(self) -> Books:
        """Return the books, judged by the callers' answers."""
        operations: dict[str, list[ClientOperation]] = {}
        for worker in self.workers:
            outcome = ClientOutcome.OK if worker.answer else ClientOutcome.INFO
            for line in worker.posting.lines:
                seen = ClientOperation(
                    worker.posting.key, line.amount, outcome, worker.started, worker.ended, worker.name
                )
                operations.setdefault(line.account, []).append(seen)
        return books_of(self.book, operations)

    def kept(self) -> bool:
        """Is every acknowledged posting in the books, once, and nothing else?"""
        books = self.books()
        assert books.balanced, books.problems
        return not (books.lost_updates or books.created_updates or books.torn or books.drift)

    def __enter__(self) -> Self:
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for worker in self.workers:
                if worker.lives:
                    worker.dies()
        finally:
            dismiss()  # the owners of the single writer
            end_orphans()
            for each in self._patches:
                each.stop()


def end_orphans() -> None:
    """A caller that died was a thread here, not a process. So the published watchdogs' threads live on, and would renew
    for ever. They end when they wake next. Each is told once: a second time would interrupt how the thread ends."""
    for thread in threading.enumerate():
        if "(_watch)" in thread.name and thread.ident and thread not in _told_to_end:
            _told_to_end.add(thread)
            ended = ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ended)


def _slept(seconds: float) -> None:
    worker = getattr(here, "worker", None)
    if worker is None:
        _sleep(seconds)
    else:
        worker.sleeps(seconds, _sleep)


def _executed(self: Redis, *args: Any, **options: Any) -> Any:
    worker = getattr(here, "worker", None)
    if worker is not None:
        worker.passes(f"redis {args[0]}")
    return _execute_command(self, *args, **options)
