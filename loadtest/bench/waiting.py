"""`manage.py bench waiting`: what waiters cost the server while a lock stays held, and how fast it is handed over.

The hot-account article (A19) says that polling loads the server and publish/subscribe does not. 2 to 64 waiters, each
with a client of its own, wait for one held lock. `commands_per_s`: what the server executes meanwhile, by its own
count, which includes the commands inside scripts. `handover_ms`: from one release to the next acquisition, when each
waiter leaves as soon as it is inside.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from redis import Redis
from rich.table import Table

from loadtest.bench import neighbours
from loadtest.bench.measured import Measured, Row, failed
from loadtest.bench.tables import blank, fill
from loadtest.servers import Valkey
from loadtest.trials.machine import machine
from locks import LOCKS, build

#: each on a server of its own: first the locks that poll, each as published, then those that are notified
CONTENDERS = ("try-lock", "token", "setnx", "token-pubsub", "token-queue", "fair-lock")
PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class WaitingPlan:
    """The numbers of waiters, and for how many seconds the server is watched."""

    waiters: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    seconds: float = 1.0


QUICK = WaitingPlan(waiters=(2, 8), seconds=0.2)


def run(plan: WaitingPlan, found: Measured, told: Callable[[str], None] = lambda _: None) -> None:
    """Fill `found`. There are no goals."""
    found.environment, found.warning = machine({}), neighbours.before()
    for slug in CONTENDERS:
        for waiters in plan.waiters:
            told(f"{slug}, {waiters} waiters")
            about: Row = {"measure": "waiting", "strategy": slug, "waiters": waiters}
            try:
                figures = watch(slug, waiters, plan.seconds)
            except Exception as error:  # noqa: BLE001  (a lock may raise anything)
                figures = failed(error)
            found.results.append(about | figures)


def watch(slug: str, waiters: int, seconds: float) -> Row:
    """Return the figures of one lock with this many waiters, on a server of its own."""
    with ExitStack() as stack:
        server = stack.enter_context(Valkey())
        admin = stack.enter_context(server.client())
        locks = [_lock(slug, stack.enter_context(server.client())) for _ in range(waiters + 1)]
        crowd = stack.enter_context(ThreadPoolExecutor(waiters))
        holder, inside = locks[0], _Inside(waiters)
        holder.acquire()
        turns = [crowd.submit(inside.visit, lock) for lock in locks[1:]]
        inside.all_ask.wait(PATIENCE)
        time.sleep(0.2)  # the first requests are over, and the waiting has begun
        commands = _commands(admin, seconds)
        released = time.monotonic()
        holder.release()
        for turn in turns:
            turn.result(PATIENCE)
    return {"commands_per_s": round(commands), "handover_ms": round(inside.handover(released), 2)}


def _lock(slug: str, redis: Redis) -> Any:
    return build(LOCKS[slug], "bench-waiting", redis=redis, lease=PATIENCE)


def _commands(admin: Redis, seconds: float) -> float:
    """Return the commands per second that the server executed, without those that count."""

    def count() -> int:
        return int(admin.info("stats")["total_commands_processed"])

    before, started = count(), time.monotonic()
    time.sleep(seconds)
    return (count() - before - 1) / (time.monotonic() - started)


class _Inside:
    """The visits: which waiter was inside from when to when."""

    def __init__(self, waiters: int) -> None:
        self.all_ask = threading.Barrier(waiters + 1)
        self._visits: list[tuple[float, float]] = []

    def visit(self, lock: Any) -> None:
        self.all_ask.wait(PATIENCE)
        if not lock.acquire(timeout=PATIENCE):
            raise TimeoutError(f"a waiter was not served within {PATIENCE:g} s")
        came = time.monotonic()
        lock.release()
        self._visits.append((came, time.monotonic()))

    def handover(self, released: float) -> float:
        """Return the median of the milliseconds between a release and the next acquisition."""
        gaps = []
        for came, left in sorted(self._visits):
            gaps.append(max(0.0, came - released))
            released = left
        return 1000 * statistics.median(gaps)


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    yield fill(
        blank("Waiting for a held lock", "lock", "waiters", "server commands/s", "hand-over, ms"),
        rows,
        lambda row: str(row["strategy"]),
        lambda row: (str(row["waiters"]), f"{row['commands_per_s']:,}", f"{row['handover_ms']:,.2f}"),
    )
