"""Several processes want one lock: sections a second, how long each waits, who is served how often."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from loadtest.bench.children import crew
from loadtest.bench.locks.contenders import command, contender
from loadtest.bench.locks.counted import counted
from loadtest.bench.locks.servers import Servers, bare_connection
from loadtest.bench.spread import percentile
from locks.fair_lock.questions import packed

COUNTER = b"bench:counter"
SET = b"*3\r\n" + packed(b"SET", COUNTER) + b"$%d\r\n%b\r\n"  # length, value
HEAD_START = 0.05  # seconds, so that all begin at the same moment


@dataclass(frozen=True)
class Order:
    """`start` and `end` on `time.monotonic()`'s clock, which all processes share; `work`: seconds inside."""

    start: float
    end: float
    work: float = 0.0


@dataclass(frozen=True)
class Done:
    """`waits`: seconds before each section. `cpu`: seconds of CPU that this process used."""

    waits: list[float]
    cpu: float


def worker(name: str, servers: Servers) -> Callable[[], Callable[[Order], Done]]:
    """In its own process."""

    def prepare() -> Callable[[Order], Done]:
        acquire, release = contender(name).make(servers)
        section = Section(bare_connection(servers.plain))
        acquire()  # its connection opens, its scripts are loaded
        release()

        def work(order: Order) -> Done:
            time.sleep(max(0.0, order.start - time.monotonic()))
            used = time.process_time()
            waits = _loop(order, acquire, section, release)
            return Done(waits, time.process_time() - used)

        return work

    return prepare


class Section:
    """One GET and one SET, prepared and the same for everyone: it is the lock that is measured."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._read = command(b"GET", COUNTER)

    def __call__(self, work: float) -> None:
        connection = self._connection
        connection.send_packed_command(self._read)
        value = int(connection.read_response() or 0)
        if work:
            time.sleep(work)
        text = b"%d" % (value + 1)
        connection.send_packed_command((SET % (len(text), text),))
        connection.read_response()


def _loop(
    order: Order, acquire: Callable[[], Any], section: Section, release: Callable[[], Any]
) -> list[float]:
    """At least one section: who came late on a busy machine has connected then, and has a wait to tell."""
    clock, waits = time.monotonic, list[float]()
    while True:
        asked = clock()
        acquire()
        waits.append(clock() - asked)
        section(order.work)
        release()
        if clock() >= order.end:
            return waits


def measure(
    name: str, servers: Servers, *, processes: int, seconds: float, work: float = 0.0
) -> dict[str, Any]:
    """Return the figures of one round. `commands`: what the lock's clients sent for each section.
    `cpu_us`: CPU of clients and server for each section. `right`: did every increment survive? Raises ChildFailed."""
    server = servers.plain
    with server.client() as client:
        client.flushall()
    with server.client() as client, crew(*[worker(name, servers) for _ in range(processes)]) as children:
        _tell(children, 0.05)
        with counted(client) as count:
            few = _tell(children, 0.1)
        client.delete(COUNTER)
        used = _cpu(server.pid)
        done = _tell(children, seconds, work=work)
        cpu = _cpu(server.pid) - used
        counted_sections = int(client.get(COUNTER) or 0)
    served = [len(each.waits) for each in done]
    waited = [wait for each in done for wait in each.waits]
    return {
        "strategy": name,
        "processes": processes,
        "sections_per_s": sum(served) / seconds,
        "wait_ms": {
            "p50": 1000 * percentile(waited, 0.5),
            "p99": 1000 * percentile(waited, 0.99),
            "max": 1000 * max(waited),
        },
        "fairness": min(served) / max(served),
        "commands": count.commands / sum(len(each.waits) for each in few) - 2,
        "server_cpu": cpu / seconds,
        "cpu_us": 1e6 * (cpu + sum(each.cpu for each in done)) / sum(served),
        "right": counted_sections == sum(served),
    }


def _tell(children: list[Any], seconds: float, **order: Any) -> list[Done]:
    start = time.monotonic() + HEAD_START
    for child in children:
        child.tell(Order(start, start + seconds, **order))
    return [child.answer(seconds) for child in children]


def _cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
