"""A schedule with its polls folded: a round that comes again and again is told once, and then how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: the longest round that is looked for, in steps; how often it must come to be folded
LONGEST, OFTEN = 8, 3
AGAIN = "again"


def folded(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps, as in explore.json; of three or more equal rounds the first, and one step of kind
    `again` for the others. What the servers held is that after the last one."""
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
    """The round that begins at `at`: how many steps, how many times in a row."""
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
