"""Draw a counterexample: a lane for each worker, time going down, and the changes on the servers beside the lanes.

A lane's line is solid while its worker may act, dashed while it is paused, dotted while it waits in a server, and ends
with the worker's death. It is thick while the worker owns a key on the lock's server.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from lost_update_lab.telling.diagram import cell
from lost_update_lab.telling.picture import DEAD, STANDS, WAITS, PictureRow, balance, rows, seconds, workers

TIME, LANE, SERVERS, TOP = 64, 318, 270, 44
LINE, PAD, GAP = 16, 7, 7
#: characters of the monospaced font that fit
LANE_CHARS, SERVER_CHARS, MOST_LINES = 38, 34, 4
LIFE = {STANDS: "life stands", WAITS: "life waits", DEAD: "", "": "life"}


def svg(example: Mapping[str, Any]) -> str:
    """Return the drawing of a counterexample from explore.json."""
    told, names = rows(example["steps"], example["opening"]), workers(example["steps"])
    width = TIME + LANE * len(names) + SERVERS
    root = ET.Element("svg", {"role": "img", "class": "schedule", "width": str(width)})
    ET.SubElement(root, "title").text = f"{example['verdict']}: {' '.join(example['sentences'][-1:])}"
    _heads(root, names, example["opening"])
    y, at, before = TOP, None, example["opening"]
    for row in told:
        height = _row(root, row, y, names, before)
        if row.step["at"] != at:
            at = row.step["at"]
            _text(root, TIME - 10, y + PAD + 11, [seconds(at)], "clock end")
        before = row.step.get("state")
        y += height
    root.set("viewBox", f"0 0 {width} {y + 8}")
    return ET.tostring(root, encoding="unicode")


def _heads(root: ET.Element, names: Sequence[str], opening: Mapping[str, Any] | None) -> None:
    for place, name in enumerate(names):
        _text(root, TIME + LANE * place + 22, 22, [f"worker {name}"], f"head w{place}")
    _text(root, TIME + LANE * len(names) + 12, 22, ["on the servers"], "head")
    if opening:
        sums = ", ".join(f"{balance(n, opening)} {amount}" for n, amount in opening["balances"].items())
        _text(root, TIME + LANE * len(names) + 136, 22, [sums], "soft")


def _row(
    root: ET.Element, row: PictureRow, y: int, names: Sequence[str], before: Mapping[str, Any] | None
) -> int:
    """Draw one row and return its height."""
    step, servers = row.step, TIME + LANE * len(names) + 12
    effects = [line for text in row.effects for line in _wrapped(text, SERVER_CHARS)]
    lines = _wrapped(cell(row), LANE_CHARS if step["worker"] else SERVER_CHARS)
    height = max(len(lines), len(effects)) * LINE + 2 * PAD if step["worker"] else 0
    height = (height or (len(lines) + len(effects)) * LINE + 2 * PAD) + GAP
    for place, name in enumerate(names):
        x = TIME + LANE * place + 10
        dies = name == step["worker"] and row.lanes[name] == DEAD
        style = "life" if dies else LIFE[row.lanes[name]]
        if style:
            _line(root, x, y, x, y + (PAD + 10 if dies else height), style)
        for state, top, bottom in ((before, y, y + PAD + 8), (step.get("state"), y + PAD + 8, y + height)):
            if _holds(state, name):
                _line(root, x, top, x, bottom, f"held w{place}")
        if name == step["worker"]:
            kind = "fault" if row.fault else ("again" if step["kind"] == "again" else f"did w{place}")
            size = {"width": LANE - 26, "height": len(lines) * LINE + 2 * PAD, "rx": 5}
            _rect(root, x + 8, y, size, f"box {kind}")
            _text(root, x + 17, y + PAD + 12, lines, "fault" if row.fault else "")
    if not step["worker"]:
        _text(root, servers, y + PAD + 12, lines, "fault" if row.fault else "over")
    changed = y + PAD + 12 + (0 if step["worker"] else LINE * len(lines))
    _text(root, servers, changed, effects, "effect")
    return height


def _holds(state: Mapping[str, Any] | None, name: str) -> bool:
    """Does the worker own a key? Counters do not count, because they outlive their holders."""
    return any(key["by"] == name and "fence" not in key["key"] for key in (state or {}).get("keys", ()))


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap the text. If it is too long, its middle is left out, never the reply at its end."""
    lines = textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False) or [""]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 2], "  …", lines[-1]]


def _line(root: ET.Element, x1: int, y1: int, x2: int, y2: int, style: str) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    ET.SubElement(root, "line", {**{name: str(value) for name, value in ends.items()}, "class": style})


def _rect(root: ET.Element, x: int, y: int, size: Mapping[str, int], style: str) -> None:
    place = {"x": x, "y": y, **size}
    ET.SubElement(root, "rect", {**{name: str(value) for name, value in place.items()}, "class": style})


def _text(root: ET.Element, x: int, y: int, lines: Sequence[str], style: str) -> None:
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        at = {"x": str(x + 7 * indent), "y": str(y + LINE * number), "class": style}
        ET.SubElement(root, "text", at).text = line.lstrip()
