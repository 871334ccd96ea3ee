"""Which kind of process used how much processor time during a span, and what that says about the limit.

A Python process executes on one core at a time. So if n web processes use nearly n cores, they are the limit. If they
use less and the machine's cores are not all busy, they wait: for locks, the disk's flush, or each other.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Self

import psutil
from django.db import connection

from loadtest.bench.neighbours import of_machine

#: kind of process → the words of its command line
KINDS: Mapping[str, tuple[str, ...]] = {
    "web": ("gunicorn", "ledger.wsgi"),
    "worker": ("procrastinate", "worker"),
    "locust": ("locust", "-f"),
}
EVERY = 0.2  # seconds between two looks
#: a core, or a process, that is used as much as this is the limit
FULL = 0.85
#: cores: more than Valkey, the masters and this process use
OTHERS = 0.3


class Processor:
    """As a context manager, reads the processor time of each kind of this process's descendants, of PostgreSQL, and of
    the whole machine ("all"), again and again."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, dict[str, float]]] = []
        self._spent: dict[tuple[str, int], float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="processor", daemon=True)
        self._database = _postmaster()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait(self, seconds: float, done: Callable[[], bool]) -> None:
        """Wait until `done()`, at most this long."""
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            time.sleep(EVERY)

    def used(self, began: float, ended: float) -> dict[str, float]:
        """Return the cores that each kind used on average between two times since the epoch. A busy machine may leave
        only one look in between: then those around it count too."""
        inside = [place for place, look in enumerate(self._looks) if began <= look[0] <= ended]
        first, last = (inside[0], inside[-1]) if inside else (0, len(self._looks) - 1)
        if first == last:
            first, last = max(first - 1, 0), min(last + 1, len(self._looks) - 1)
        (begins, before), (ends, after) = self._looks[first], self._looks[last]
        took = max(ends - begins, EVERY)
        return {kind: (spent - before.get(kind, 0.0)) / took for kind, spent in after.items()}

    def _watch(self) -> None:
        while not self._over.is_set():
            self._looks.append((time.time(), self._look()))
            self._over.wait(EVERY)

    def _look(self) -> dict[str, float]:
        for kind, process in self._processes():
            try:
                times = process.cpu_times()
            except psutil.Error:  # it has ended: what it used stays counted
                continue
            self._spent[kind, process.pid] = times.user + times.system
        found: dict[str, float] = defaultdict(float)
        for (kind, _), spent in self._spent.items():
            found[kind] += spent
        return {**found, "all": of_machine()[0]}

    def _processes(self) -> list[tuple[str, psutil.Process]]:
        found = [(_kind(process), process) for process in psutil.Process().children(recursive=True)]
        if self._database:
            try:
                servers = self._database.children(recursive=True)
            except psutil.Error:
                servers = []
            found += [("postgres", process) for process in servers]
        return [(kind, process) for kind, process in found if kind]


def _kind(process: psutil.Process) -> str:
    try:
        words = process.cmdline()
    except psutil.Error:
        return ""
    for kind, wanted in KINDS.items():
        if set(wanted) <= set(words) or (kind == "web" and any("gunicorn" in word for word in words)):
            return kind
    return ""


def _postmaster() -> psutil.Process | None:
    """Return PostgreSQL's first process. None: it is on another machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        backend = psutil.Process(pid)
        return backend.parent() if "postgres" in backend.name() else None
    except psutil.Error:
        return None


def limit_of(used: Mapping[str, float], processes: Mapping[str, int], cores: int) -> str:
    """Name the limit of a point. `used`: cores by kind; `processes`: how many of each kind there were."""
    each = {kind: used.get(kind, 0.0) / count for kind, count in processes.items()}
    busiest = max(each, key=lambda kind: each[kind])
    if each[busiest] >= FULL:
        return f"{busiest}: {processes[busiest]} of its processes, a core each"
    if used["all"] < FULL * cores:
        return "waiting: locks, the disk, each other"
    others = used["all"] - sum(spent for kind, spent in used.items() if kind != "all")
    with_others = f", {others:.1f} by other programs" if others >= OTHERS else ""
    return f"{cores} cores are busy{with_others}"
