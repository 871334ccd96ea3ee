"""Several processes want one lock: sections per second, waiting times, and how evenly they are served. The contenders
take turns in each round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
from redis import Redis

from loadtest.bench.children import ChildFailed, crew
from loadtest.bench.locks.contenders import CONTENDED, OURS, WAITING, command, contender
from loadtest.bench.locks.servers import BenchServers, bare_connection
from loadtest.bench.measured import Row, failed, percentile, ratios, spread
from locks.fair_lock.questions import packed

COUNTER = b"bench:counter"
SET = b"*3\r\n" + packed(b"SET", COUNTER) + b"$%d\r\n%b\r\n"  # length, value
PROCESSES = 8
WORK = 0.001  # seconds inside, if there is any
HEAD_START = 0.05  # seconds, so that all start at the same moment


@dataclass(frozen=True)
class SectionsOrder:
    """`start` and `end`: by `time.monotonic()`, which all processes share. `work`: seconds inside."""

    start: float
    end: float
    work: float = 0.0


@dataclass(frozen=True)
class SectionsDone:
    """`waits`: seconds of waiting before each section. `cpu`: CPU seconds that this process used."""

    waits: list[float]
    cpu: float


def worker(name: str, servers: BenchServers) -> Callable[[], Callable[[SectionsOrder], SectionsDone]]:
    """Return the preparation of a worker process."""

    def prepare() -> Callable[[SectionsOrder], SectionsDone]:
        acquire, release = contender(name).make(servers)
        section = Section(bare_connection(servers.plain))
        acquire()  # opens its connection and loads its scripts
        release()

        def work(order: SectionsOrder) -> SectionsDone:
            time.sleep(max(0.0, order.start - time.monotonic()))
            used = time.process_time()
            waits = _loop(order, acquire, section, release)
            return SectionsDone(waits, time.process_time() - used)

        return work

    return prepare


class Section:
    """One GET and one SET, prepared, and the same for all contenders, because only the lock is measured."""

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
    order: SectionsOrder, acquire: Callable[[], Any], section: Section, release: Callable[[], Any]
) -> list[float]:
    """Run sections until the end, and at least one: a process that starts late on a busy machine still has a result."""
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
    name: str, servers: BenchServers, *, processes: int, seconds: float, work: float = 0.0
) -> dict[str, Any]:
    """Return the figures of one round. `commands`: commands that the lock's clients sent per section. `cpu_us`: CPU
    time of clients and server per section. `right`: did every increment survive? Raises ChildFailed."""
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


def _tell(children: list[Any], seconds: float, **order: Any) -> list[SectionsDone]:
    start = time.monotonic() + HEAD_START
    for child in children:
        child.tell(SectionsOrder(start, start + seconds, **order))
    return [child.answer(seconds) for child in children]


def _cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


class Count:
    commands = 0


@contextmanager
def counted(admin: Redis) -> Iterator[Count]:
    """Count the commands that the server receives inside the block. A script is one command. The server counts, so no
    client has to be changed."""
    count = Count()
    with admin.monitor() as monitor:
        _heard_until(monitor, admin, "the count begins")
        yield count
        count.commands = _heard_until(monitor, admin, "the count ends")


def _heard_until(monitor: Any, admin: Redis, mark: str) -> int:
    admin.echo(mark)
    commands = 0
    for heard in monitor.listen():
        if mark in heard["command"]:
            break
        commands += heard["client_type"] != "lua"
    return commands


Round = dict[tuple[str, str], dict[str, Any]]


def one_round(servers: BenchServers, seconds: float, yours: Sequence[str] = ()) -> Round:
    """Measure all contenders once. Figures that form a ratio are measured one right after the other, because other
    programs come and go. A contender that fails has a reason and no figures."""
    figures: Round = {}

    def told(what: str, name: str, processes: int = PROCESSES, work: float = 0.0) -> None:
        try:
            found = measure(name, servers, processes=processes, seconds=seconds, work=work)
        except ChildFailed as error:
            found = {"processes": processes, **failed(error)}
        figures[what, name] = found

    told("alone", OURS, 1)
    for name in (*CONTENDED, *yours):
        told("contended", name)
    told("alone, 1 ms", OURS, 1, WORK)
    told("contended, 1 ms", OURS, PROCESSES, WORK)
    return figures


def rows(rounds: list[Round]) -> Iterator[Row]:
    """Yield one row for each contender. `ratio`: fair-lock's sections with 8 processes, divided by the contender's,
    unless fair-lock failed. `wait_ms`: the median of the rounds for p50 and p99, the longest of all for max."""
    for measured, name in rounds[0]:
        of = [each[measured, name] for each in rounds]
        about = {"measure": measured, "strategy": name, "processes": of[0]["processes"]}
        if reason := next((each["reason"] for each in of if "reason" in each), ""):
            yield {**about, **failed(reason)}
            continue
        speeds = [each["sections_per_s"] for each in of]
        ours = _all(rounds, "contended, 1 ms" if measured.endswith("1 ms") else "contended", OURS)
        if ours:
            about["ratio"] = ratios((each["sections_per_s"] for each in ours), speeds)
        if (measured, name) == ("contended", OURS):
            about |= _waits_of_ours(rounds)
        waits = {which: [each["wait_ms"][which] for each in of] for which in ("p50", "p99", "max")}
        figures = ("fairness", "commands", "server_cpu", "cpu_us")
        yield {
            **about,
            "per_s": spread(speeds),
            "wait_ms": {
                "p50": statistics.median(waits["p50"]),
                "p99": statistics.median(waits["p99"]),
                "max": max(waits["max"]),
            },
            **{figure: spread(each[figure] for each in of) for figure in figures},
            "right": all(each["right"] for each in of),
        }


def _all(rounds: list[Round], measured: str, name: str) -> list[dict[str, Any]]:
    """Return the contender's figures in each round, or [] if it failed in one."""
    of = [each[measured, name] for each in rounds if (measured, name) in each]
    return [] if any("reason" in each for each in of) else of


def _waits_of_ours(rounds: list[Round]) -> Row:
    """Return how long fair-lock's waiters wait, round by round: p99 divided by 8 sections of a single process, and the
    longest wait divided by that of redis-py's Lock. A ratio without its denominator is left out."""
    ours = [each["wait_ms"] for each in _all(rounds, "contended", OURS)]
    found: Row = {}
    if alone := _all(rounds, "alone", OURS):
        sections = (1000 * PROCESSES / each["sections_per_s"] for each in alone)
        found["wait_of_sections"] = ratios((each["p99"] for each in ours), sections)
    if theirs := _all(rounds, "contended", "redis-py"):
        longest = (each["wait_ms"]["max"] for each in theirs)
        found["longest_wait_of_redis_py"] = ratios((each["max"] for each in ours), longest)
    return found


def waiters(servers: BenchServers, counts: tuple[int, ...], seconds: float) -> Iterator[Row]:
    """Yield a row for each way of waiting and number of processes."""
    for count in counts:
        for way, name in WAITING.items():
            about = {"measure": "waiters", "way": way, "strategy": name, "processes": count}
            try:
                yield about | measure(name, servers, processes=count, seconds=seconds)
            except ChildFailed as error:
                yield about | failed(error)
