"""What hazards order a worker to do besides posting: ("call", name, …)."""

from __future__ import annotations

import select
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import _GeneratorContextManager
from typing import Any

from loadtest.faults.workers.desk import Desk
from loadtest.faults.workers.pulse import Pulse


def release_foreign(desk: Desk) -> str:
    """Release the account's lock from a new object that never took it. "" if there is no such release: a generator that
    was never started would start at its exit, and so take the lock."""
    lock = _lock(desk)
    if isinstance(lock, _GeneratorContextManager):
        return ""
    try:
        lock.release() if hasattr(lock, "release") else lock.__exit__(None, None, None)
    except Exception as error:  # noqa: BLE001  (a lock may refuse this)
        return f"refused it: {type(error).__name__}: {error}"
    return "said nothing"


def take_and_die(desk: Desk) -> tuple[bool, bool]:
    """Let a thread take the lock, read, and end without a release, as code without a `finally` does. Return whether it
    took the lock, and whether it ended. From here on the pulse of the process is taken."""
    desk.pulse = Pulse(time.monotonic())
    taken: list[Any] = []

    def business() -> None:
        lock = _lock(desk)
        lock.__enter__()
        taken.append(lock)

    thread = threading.Thread(target=business, name="business")
    thread.start()
    thread.join(10)
    return bool(taken), not thread.is_alive()


def lateness(desk: Desk) -> float:
    """Return by how many seconds the latest beat was late since `take_and_die`."""
    assert desk.pulse
    return desk.pulse.end()


def _lock(desk: Desk) -> Any:
    from ledger.resources import resources
    from ledger.strategies import Settings, find
    from locks import build

    keywords = Settings.of(desk.book.settings).lock_keywords()
    factory = find(desk.book.strategy).factory  # type: ignore[attr-defined]
    return build(factory, f"{desk.book.pk}:A0001", **resources(desk.book), **keywords)


def clock(desk: Desk) -> float:
    """Return the time that this process believes it is."""
    return time.time()


def sleep(seconds: float) -> None:
    """Replaces time.sleep under libfaketime, whose version 0.9.10 breaks the call that Python makes (clock_nanosleep
    until a monotonic time), but not the relative wait of select."""

    select.select((), (), (), max(0.0, seconds))


def disconnect(desk: Desk, sql: bool) -> None:
    """Close the connections to Valkey, and with `sql` those to the database. The next posting then needs new ones."""
    from django.db import connections

    from ledger.resources import redis_client

    redis_client().connection_pool.disconnect()
    if sql:
        connections.close_all()


class Halfway(list[Any]):
    """A list whose iteration stops before its second element, once, until the judge says "go"."""

    desk: Any

    def __iter__(self) -> Iterator[Any]:
        for number, each in enumerate(list.__iter__(self)):
            if number == 1 and self.desk.halfway:
                self.desk.halfway = False
                self.desk.stand()
            yield each


def gate_between_accounts(desk: Desk, strategy: Any, store: Any) -> None:
    """Let a transfer stop between its two accounts: between two locks, or between two updates."""
    order, put = strategy.order, store.put

    def halfway(elements: Any) -> Any:
        if not desk.halfway:
            return elements
        stopping = Halfway(elements)
        stopping.desk = desk
        return stopping

    strategy.order = lambda self, posting: halfway(order(self, posting))
    store.put = lambda self, changes: put(self, halfway(changes))


def transfer(desk: Desk, legs: Any, span: tuple[float, float], lease: float, stops: bool) -> str:
    """Post a transfer. `stops`: it reports "inside" after the first of its accounts, and waits there."""
    desk.span, desk.halfway = span, stops
    desk.book.settings["lease"] = lease
    try:
        return desk.one(legs)
    finally:
        desk.halfway = False


def transfers(desk: Desk, legs: Any, count: int, lease: float) -> list[str]:
    """Post a transfer `count` times, without a stop."""
    desk.span = (0.0, 0.002)
    desk.book.settings["lease"] = lease
    return [desk.one(legs) for _ in range(count)]


def crowd(desk: Desk, threads: int, lease: float) -> dict[str, int]:
    """Post once in each of `threads` threads, all at once. Return how often each answer came. The threads stay, with
    their connections, for this process's next crowd."""
    desk.span = (0.0, 0.0)
    desk.book.settings["lease"] = lease
    desk.crowd = desk.crowd or ThreadPoolExecutor(threads)
    start = threading.Barrier(threads)  # so each thread takes one

    def post() -> str:
        start.wait()
        desk.name_session()
        return desk.one().split(":")[0]

    return Counter(one.result() for one in [desk.crowd.submit(post) for _ in range(threads)])


def read_from(desk: Desk, url: str) -> None:
    """From now on send plain reads of a balance to the replica at `url`, as a router for reads would do."""
    from django.db import connections
    from environ import Env

    from ledger.stores.sql import SqlStore

    wanted = {**connections.settings["default"], **Env.db_url_config(url)}
    connections.settings = connections.configure_settings({**connections.settings, "replica": wanted})
    desk.stale = []
    read = SqlStore.read

    def elsewhere(store: Any, posting: Any) -> Any:
        desk.stale.append(time.monotonic())
        home, store.db = store.db, "replica"
        try:
            return read(store, posting)
        finally:
            store.db = home

    SqlStore.read = elsewhere  # type: ignore[method-assign,assignment]


def reads_elsewhere(desk: Desk) -> list[float]:
    """Return when balances were read from the replica, by the monotonic clock."""
    return desk.stale


def import_chunk(desk: Desk, run: int, lane: int, dies_at: int, lease: float) -> bool:
    """Process a chunk of an import, as a background worker does. Stop inside line `dies_at` (0: never)."""
    from django.conf import settings

    from ledger.imports import apply, chunks

    settings.IMPORT_LEASE = lease
    chunk = chunks.claim(run, lane)
    if chunk is None:
        return False
    desk.book.settings["lease"] = lease
    desk.span, desk.lines = (0.0, 0.0), dies_at
    left = apply.work(chunk)
    chunks.give_back(chunk, later=0.1 if left else 0.0)
    return True
