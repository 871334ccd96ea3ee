"""Contended figures: all contenders in turns, round after round; the rows of the result."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from loadtest.bench.children import ChildFailed
from loadtest.bench.locks import contended as contended
from loadtest.bench.locks.contenders import CONTENDED, OURS, WAITING
from loadtest.bench.locks.goals import PROCESSES
from loadtest.bench.locks.servers import Servers
from loadtest.bench.measured import Row, failed
from loadtest.bench.spread import ratios, spread

WORK = 0.001  # seconds

Round = dict[tuple[str, str], dict[str, Any]]


def one_round(servers: Servers, seconds: float, yours: Sequence[str] = ()) -> Round:
    """What is divided by each other stands next to each other: other programs come and go. Who fails has a reason
    and no figures."""
    figures: Round = {}

    def measure(what: str, name: str, processes: int = PROCESSES, work: float = 0.0) -> None:
        try:
            found = contended.measure(name, servers, processes=processes, seconds=seconds, work=work)
        except ChildFailed as error:
            found = {"processes": processes, **failed(error)}
        figures[what, name] = found

    measure("alone", OURS, 1)
    for name in (*CONTENDED, *yours):
        measure("contended", name)
    measure("alone, 1 ms", OURS, 1, WORK)
    measure("contended, 1 ms", OURS, PROCESSES, WORK)
    return figures


def rows(rounds: list[Round]) -> Iterator[Row]:
    """Yield one row for each contender. `ratio`: fair-lock's sections with 8 processes for each of its own, if it
    did not fail; `wait_ms`: the median of the rounds for p50 and p99, the longest of all for max."""
    for measure, name in rounds[0]:
        of = [each[measure, name] for each in rounds]
        about = {"measure": measure, "strategy": name, "processes": of[0]["processes"]}
        if reason := next((each["reason"] for each in of if "reason" in each), ""):
            yield {**about, **failed(reason)}
            continue
        ours = [each["contended, 1 ms" if measure.endswith("1 ms") else "contended", OURS] for each in rounds]
        speeds = [each["sections_per_s"] for each in of]
        if not any("reason" in each for each in ours):
            about["ratio"] = ratios((each["sections_per_s"] for each in ours), speeds)
        yield {
            **about,
            "per_s": spread(speeds),
            "wait_ms": {
                "p50": statistics.median(each["wait_ms"]["p50"] for each in of),
                "p99": statistics.median(each["wait_ms"]["p99"] for each in of),
                "max": max(each["wait_ms"]["max"] for each in of),
            },
            "fairness": spread(each["fairness"] for each in of),
            "commands": spread(each["commands"] for each in of),
            "server_cpu": spread(each["server_cpu"] for each in of),
            "cpu_us": spread(each["cpu_us"] for each in of),
            "right": all(each["right"] for each in of),
        }


def waiters(servers: Servers, counts: tuple[int, ...], seconds: float) -> Iterator[Row]:
    """Yield a row for each way of waiting and number of processes."""
    for count in counts:
        for way, name in WAITING.items():
            about = {"measure": "waiters", "way": way, "strategy": name, "processes": count}
            try:
                yield about | contended.measure(name, servers, processes=count, seconds=seconds)
            except ChildFailed as error:
                yield about | failed(error)
