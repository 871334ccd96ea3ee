"""A schedule as lanes in the terminal: one column for each worker, time downwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadtest.explorer.narrative import shortened

WIDTH = 52


def diagram(steps: Sequence[Mapping[str, Any]], width: int = WIDTH) -> str:
    """Return the lanes. `steps`: as in explore.json."""
    workers = sorted({step["worker"] for step in steps if step["worker"]})
    lines = [_row("ms", ["worker " + worker for worker in workers], width)]
    lines.append("─" * len(lines[0]))
    for step in steps:
        cells = [""] * len(workers)
        text = cell(step, width)
        if step["worker"]:
            cells[workers.index(step["worker"])] = text
            lines.append(_row(f"{step['at'] / 1000:g}", cells, width))
        else:
            lines.append(f"{step['at'] / 1000:>7g} ┊ " + f" {text} ".center(width * len(workers), "╌"))
    return "\n".join(lines) + "\n"


def cell(step: Mapping[str, Any], width: int) -> str:
    """The step in few words: the command, and the reply behind an arrow, which is never cut off first."""
    mark = "" if step["kind"] == "step" else "⚡ "
    if not step["reply"]:
        return shortened(mark + step["command"], width)
    reply = shortened(step["reply"], width // 2)
    return shortened(mark + step["command"], width - len(reply) - 3) + " → " + reply


def _row(time: str, cells: Sequence[str], width: int) -> str:
    return (f"{time:>7} │ " + "│ ".join(each.ljust(width) for each in cells)).rstrip()
