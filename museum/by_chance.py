"""How bugs are looked for today: threads that a barrier lets go at the same moment, again and again.

The same rounds are timed, broken and mended forms in turns, so that a slow minute of the machine meets all of them:
that is the price of a cure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from django.db import connection, connections

from lost_update_lab import Worker
from lost_update_lab.scenarios.commits import holds
from lost_update_lab.under_test.scenario import invariants_of, workers_of
from museum.case import KEPT, Form
from museum.opening import opened, renew
from museum.registry import Exhibit

TRIES = 200
#: seconds after which a round is stuck, and so found
PATIENCE = 10.0


@dataclass
class ChanceTally:
    """`found`: rounds that broke the invariant. `seconds`: how long each round took."""

    found: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def tries(self) -> int:
        return len(self.seconds)


def tried(exhibit: Exhibit, forms: Sequence[Form], tries: int = TRIES) -> dict[str, ChanceTally]:
    """→ by the name of the form. A mended form takes part in every fourth round: that is enough for its price."""
    tallies = {form.name: ChanceTally() for form in forms}
    if not forms:
        return tallies
    with (
        opened(exhibit),
        _deadlocks_end_soon(),
        _threads(max(len(form.workers) for form in forms)) as threads,
    ):
        for number in range(tries):
            for form in forms:
                if form.verdict == KEPT and number % 4:
                    continue
                renew(exhibit)
                results, seconds = _round(threads, workers_of(form.workers))
                tallies[form.name].seconds.append(seconds)
                tallies[form.name].found += not _kept(exhibit, form, results)
    return tallies


def ratio(one: ChanceTally, other: ChanceTally) -> float:
    """Rounds per second of the one ÷ those of the other, by their medians."""
    return round(median(other.seconds) / median(one.seconds), 2)


@contextmanager
def _deadlocks_end_soon() -> Iterator[None]:
    """PostgreSQL looks for one after a second: 200 of them would take minutes."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '10ms'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} RESET deadlock_timeout")


@contextmanager
def _threads(number: int) -> Iterator[ThreadPoolExecutor]:
    threads = ThreadPoolExecutor(number, "museum")
    try:
        yield threads
    finally:
        gate = threading.Barrier(number)
        leaving = [threads.submit(_leave, gate) for _ in range(number)]
        for each in leaving:
            each.result(PATIENCE)
        threads.shutdown()


def _leave(gate: threading.Barrier) -> None:
    """Each thread has a connection of its own, and drops it."""
    gate.wait(PATIENCE)
    connections.close_all()


def _round(threads: ThreadPoolExecutor, workers: Sequence[Worker]) -> tuple[list[Any], float]:
    gate = threading.Barrier(len(workers) + 1)
    running = [threads.submit(_work, each, gate) for each in workers]
    gate.wait(PATIENCE)
    begun = time.perf_counter()
    results = [each.result(PATIENCE) for each in running]
    return results, time.perf_counter() - begun


def _work(worker: Worker, gate: threading.Barrier) -> Any:
    """→ what it returned, or raised, as an invariant of the explorer gets it"""
    gate.wait(PATIENCE)
    results = []
    try:
        for operation in worker.operations:
            results.append(operation.call(*operation.args, **operation.keywords))
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what the caller gets)
        return error
    return results[0] if len(results) == 1 else results


def _kept(exhibit: Exhibit, form: Form, results: Sequence[Any]) -> bool:
    invariants = invariants_of(form.invariant or exhibit.case.invariant)
    return all(holds(each, *each.taken(results)) for each in invariants)
