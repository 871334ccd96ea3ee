"""A schedule with its polls folded: a round that repeats is told once, with the number of repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: the longest round to look for, in steps; how often it must repeat to be folded
LONGEST, OFTEN = 8, 3
AGAIN = "again"


def folded(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps, as in explore.json. Of three or more equal rounds only the first is kept, followed by one step
    of kind `again` for the others. That step holds the servers' contents after the last round."""
    told: list[dict[str, Any]] = []
    at = 0
    while at < len(steps):
        length, times = _round(steps, at)
        if times < OFTEN:
            told.append(dict(steps[at]))
            at += 1
            continue
        told += map(dict, steps[at : at + length])
        told.append(_again(steps[at : at + length], steps[at + length * times - 1], times - 1))
        at += length * times
    return told


def _round(steps: Sequence[Mapping[str, Any]], at: int) -> tuple[int, int]:
    """The round that begins at `at`: its number of steps, and how many times it comes in a row."""
    for length in range(1, LONGEST + 1):
        pattern, times = list(map(_same, steps[at : at + length])), 1
        while list(map(_same, steps[at + length * times : at + length * (times + 1)])) == pattern:
            times += 1
        if times >= OFTEN:
            return length, times
    return 1, 1


def _same(step: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(step[name] for name in ("worker", "task", "kind", "command", "reply", "faults"))


def _again(first: Sequence[Mapping[str, Any]], last: Mapping[str, Any], times: int) -> dict[str, Any]:
    workers = sorted({step["worker"] for step in first if step["worker"]})
    text = f"the same {times} times more, until {last['at'] / 1_000_000:g} s"
    return {
        **last,
        "worker": workers[0] if len(workers) == 1 else "",
        "kind": AGAIN,
        "command": text,
        "reply": "",
        "sentence": f"{' and '.join(workers) or 'the server'}: {text}",
    }
