"""Contended figures: all contenders in turns, round after round; the rows of the result."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from loadtest.bench import locks_contended as contended
from loadtest.bench.locks_contenders import CONTENDED, WAITING
from loadtest.bench.locks_goals import PROCESSES
from loadtest.bench.locks_servers import Servers
from loadtest.bench.spread import spread

OURS = "fair-lock"
WORK = 0.001  # seconds

Round = dict[tuple[str, str], dict[str, Any]]


def one_round(servers: Servers, seconds: float) -> Round:
    """What is divided by each other stands next to each other: other programs come and go."""
    figures: Round = {}

    def measure(what: str, name: str, processes: int = PROCESSES, work: float = 0.0) -> None:
        found = contended.measure(name, servers, processes=processes, seconds=seconds, work=work)
        figures[what, name] = found

    measure("alone", OURS, 1)
    for name in CONTENDED:
        measure("contended", name)
    measure("alone, 1 ms", OURS, 1, WORK)
    measure("contended, 1 ms", OURS, PROCESSES, WORK)
    return figures


def rows(rounds: list[Round]) -> Iterator[dict[str, Any]]:
    """Yield one row for each contender. `ratio`: fair-lock's sections with 8 processes for each of its own;
    `wait_ms`: the median of the rounds for p50 and p99, the longest of all for max."""
    for measure, name in rounds[0]:
        of = [each[measure, name] for each in rounds]
        ours = "contended, 1 ms" if measure.endswith("1 ms") else "contended"
        ratios = [
            each[ours, OURS]["sections_per_s"] / each[measure, name]["sections_per_s"] for each in rounds
        ]
        yield {
            "measure": measure,
            "strategy": name,
            "processes": of[0]["processes"],
            "per_s": spread(each["sections_per_s"] for each in of),
            "ratio": spread(ratios),
            "wait_ms": {
                "p50": statistics.median(each["wait_ms"]["p50"] for each in of),
                "p99": statistics.median(each["wait_ms"]["p99"] for each in of),
                "max": max(each["wait_ms"]["max"] for each in of),
            },
            "fairness": spread(each["fairness"] for each in of),
            "commands": spread(each["commands"] for each in of),
            "server_cpu": spread(each["server_cpu"] for each in of),
            "cpu_us": spread(each["cpu_us"] for each in of),
            "counter_right": all(each["counter_right"] for each in of),
        }


def waiters(servers: Servers, counts: tuple[int, ...], seconds: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each way of waiting and number of processes."""
    for count in counts:
        for way, name in WAITING.items():
            found = contended.measure(name, servers, processes=count, seconds=seconds)
            yield {"measure": "waiters", "way": way, **found}
