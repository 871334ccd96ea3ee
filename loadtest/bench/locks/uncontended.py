"""Acquire and release without contention: cycles per second. The contenders take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from loadtest.bench.children import Child, ChildFailed, Foreign, Forked
from loadtest.bench.locks import foreign_peer
from loadtest.bench.locks.contenders import FOREIGN, OURS, UNCONTENDED, Contender
from loadtest.bench.locks.contenders import contender as contender_of
from loadtest.bench.locks.peer_python import NotInstalled, python_with
from loadtest.bench.locks.servers import BenchServers
from loadtest.bench.measured import Row, failed, not_run, ratios, spread

WARM_UP = 0.03  # seconds


def worker(contender: Contender, servers: BenchServers) -> Callable[[], Callable[[float], float]]:
    """Return the preparation of a process whose work is seconds → cycles per second."""

    def prepare() -> Callable[[float], float]:
        acquire, release = contender.make(servers)

        def work(seconds: float) -> float:
            clock, cycles = time.perf_counter, 0
            started = clock()
            while (passed := clock() - started) < seconds:
                for _ in range(10):
                    acquire()
                    release()
                cycles += 10
            return cycles / passed

        return work

    return prepare


def measure(
    servers: BenchServers, *, rounds: int, seconds: float, install: bool, yours: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield one row for each contender: `per_s`, and `ratio`, fair-lock's cycles divided by the contender's, unless
    fair-lock failed."""
    with ExitStack() as stack:
        children: dict[str, Child] = {}
        absent: dict[str, Row] = {}
        for name, child in _children(servers, install, yours, absent):
            children[name] = child
            stack.callback(child.close)
        figures: dict[str, list[float]] = {name: [] for name in children}
        for turn in range(-1, rounds):
            for name in list(children):
                try:
                    children[name].tell(seconds if turn >= 0 else WARM_UP)
                    speed = children[name].answer(seconds)
                except ChildFailed as error:
                    absent[name] = failed(error)
                    del children[name]
                    continue
                if turn >= 0:
                    figures[name].append(speed)
    yield from _rows(figures, absent)


def _children(
    servers: BenchServers, install: bool, yours: Sequence[str], absent: dict[str, Row]
) -> Iterator[tuple[str, Child]]:
    for contender in (*UNCONTENDED, *map(contender_of, yours)):
        yield contender.name, Forked(worker(contender, servers))
    for peer in FOREIGN:
        try:
            python = python_with(peer, make=install)
        except NotInstalled as error:
            absent[peer] = not_run(error)
            continue
        yield peer, Foreign(python, Path(foreign_peer.__file__), peer, str(servers.plain.socket))


def _rows(figures: dict[str, list[float]], absent: dict[str, Row]) -> Iterator[Row]:
    for name, speeds in figures.items():
        if name not in absent:
            ratio = {} if OURS in absent else {"ratio": ratios(figures[OURS], speeds)}
            yield {"strategy": name, "per_s": spread(speeds), **ratio}
    for name, reason in absent.items():
        yield {"strategy": name, **reason}
