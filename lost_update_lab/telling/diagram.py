"""A schedule as lanes in the terminal: one column for each worker, time downwards, the servers on the right.

   time │ A                              │ B                              │ on the servers
────────┼────────────────────────────────┼────────────────────────────────┼───────────────────────
    0 s │ SET A0001 1 NX PX 5000 → OK    │                                │ key A0001: A's, 5 s left
        │ ↯ stands still                 │                                │
    5 s │ ┊ stands still                 │                                │ key A0001: its lease is over
        │ ┊ stands still                 │ SET A0001 1 NX PX 5000 → OK    │ key A0001: B's, 5 s left
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from lost_update_lab.telling.picture import DEAD, STANDS, WAITS, PictureRow, balance, rows, seconds, workers

TIME, LEAST, MOST = 7, 28, 54
_STANDING = {STANDS: "┊ stands still", WAITS: "⋯ waits for the server", DEAD: "×", "": ""}


def diagram(
    steps: Sequence[Mapping[str, Any]], opening: Mapping[str, Any] | None = None, width: int = 140
) -> str:
    """Return the lanes. `steps`, `opening`: as in explore.json; `width`: of the terminal."""
    names = workers(steps)
    lane = max(LEAST, min(MOST, (width - TIME - 3) // (len(names) + 1) - 3))
    widths = [*([lane] * len(names)), lane]
    lines = [_line("time", [*(f"worker {name}" for name in names), "on the servers"], widths)]
    lines.append("─" * (TIME + 1) + "".join("┼" + "─" * (w + 2) for w in widths))
    if opening:
        told = [f"{balance(name, opening)} {amount}" for name, amount in opening["balances"].items()]
        lines.append(_line("", [""] * len(names) + [", ".join(told)], widths))
    at = None
    for row in rows(steps, opening):
        time, at = ("" if row.step["at"] == at else seconds(row.step["at"])), row.step["at"]
        lines += _row(row, names, time, lane)
    return "\n".join(lines) + "\n"


def _row(row: PictureRow, names: Sequence[str], time: str, lane: int) -> Iterator[str]:
    cells = [_wrapped(cell(row), lane) if name == row.step["worker"] else [""] for name in names]
    servers = [line for text in row.effects for line in _wrapped(text, lane)]
    if not row.step["worker"]:
        servers = [*_wrapped(cell(row), lane), *servers]
    for number, texts in enumerate(zip_longest(*cells, servers, fillvalue="")):
        lines = list(texts)
        for place, name in enumerate(names):
            if name != row.step["worker"]:
                lines[place] = _STANDING[row.lanes[name]] if number == 0 else lines[place]
        yield _line(time if number == 0 else "", lines, [lane] * len(lines))


def cell(row: PictureRow) -> str:
    """The step in a few words: the command, and the reply behind an arrow."""
    step = row.step
    text = ("↯ " if row.fault else "") + " ".join(step["command"].split())
    if step["kind"] == "lease":
        text = f"key {step['command']}: its lease is over"
    elif step["task"] != step["worker"] and step["worker"]:
        text = f"({step['task']}) {text}"
    return text + (f" → {step['reply']}" if step["reply"] and step["kind"] != "lease" else "")


def _wrapped(text: str, width: int, most: int = 3) -> list[str]:
    """At most three lines. The reply comes last, and is never what is left out."""
    lines = textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False) or [""]
    return lines if len(lines) <= most else [lines[0], "  …", lines[-1]]


def _line(time: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = "│ ".join(each.ljust(width + 1) for each, width in zip(cells, widths, strict=True))
    return f"{time:>{TIME}} │ {padded}".rstrip()
