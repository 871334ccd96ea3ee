"""Draw a loss: two writers, the account between them, time going down.

web-1            balance           web-2
  │ ◀── reads 100 ── │               │
  │                  │ ── reads 100 ─▶
  │ ── writes 110 ─▶ │               │
  │                  │ ◀─ writes 120 ─       over 110: 10 lost

A fault is a line across all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

WIDTH, ROW, TOP = 760, 46, 62
#: characters that fit across the drawing, and above a lane; the sentence has the full names
WIDE, NAME = 96, 30
LANES = {"lost": 130, "account": 380, "by": 630}


class Arrow(NamedTuple):
    """One arrow: the writer (`lost` or `by`), read or write, the balance, the time. Or a `fault` of no writer."""

    lane: str
    kind: str
    label: str
    at: datetime


def events(loss: dict[str, Any]) -> list[Arrow]:
    """Return what the two writers did: reads in the order of their clocks, writes in the order of the server."""
    found = []
    for lane, entry in (("lost", loss["lost"]), ("by", loss["overwritten_by"])):
        if entry is None:
            continue
        wrote = f"writes {entry['balance_after']:,} ({entry['amount']:+,})"
        read_at, written_at = (datetime.fromisoformat(entry[key]) for key in ("read_at", "written_at"))
        found.append(Arrow(lane, "read", f"reads {entry['balance_before']:,}", min(read_at, written_at)))
        found.append(Arrow(lane, "write", wrote, written_at))
    found.sort(key=lambda event: event.at)
    writes = sorted((e for e in found if e.kind == "write"), key=lambda event: event.lane == "by")
    return [event if event.kind == "read" else writes.pop(0) for event in found]


def svg(loss: dict[str, Any] | None, faults: Sequence[tuple[datetime, str]] = ()) -> str:
    """Return the drawing of `loss` (from `Loss.as_json`), or an empty text if there is nothing to draw. `faults`: the
    faults and their times by the writers' clocks."""
    if not loss or not loss.get("lost"):
        return ""
    drawn = _with(faults, events(loss))
    height = TOP + ROW * len(drawn) + 34
    root = ET.Element("svg", {"viewBox": f"0 0 {WIDTH} {height}", "role": "img", "class": "timeline"})
    ET.SubElement(root, "title").text = loss["sentence"]
    by = loss["overwritten_by"]
    heads = {
        "lost": loss["lost"]["worker"],
        "account": f"account {loss['account']}",
        "by": by["worker"] if by else "",
    }
    for lane, x in LANES.items():
        if heads[lane]:
            _text(root, x, 24, _short(heads[lane], NAME), "lane")
            _line(root, x, 38, x, height - 30, "rail")
    for row, event in enumerate(drawn):
        draw = _across if event.kind == "fault" else _arrow
        draw(root, event, TOP + ROW * row, drawn[0].at)
    lost = f"{abs(loss['amount']):,} lost" if by else f"{abs(loss['amount']):,} lost: the store forgot it"
    _text(root, LANES["account"], height - 8, lost, "gone")
    return ET.tostring(root, encoding="unicode")


def _with(faults: Sequence[tuple[datetime, str]], arrows: list[Arrow]) -> list[Arrow]:
    """Put each fault before the first later arrow. The arrows keep their order."""
    told = list(arrows)
    for at, what in sorted(faults):
        place = next((number for number, event in enumerate(told) if event.at > at), len(told))
        told.insert(place, Arrow("", "fault", what, at))
    return told


def _across(root: ET.Element, event: Arrow, y: int, start: datetime) -> None:
    _line(root, 8, y, WIDTH - 8, y, "fault")
    _text(
        root, LANES["account"], y - 8, f"{_short(event.label, WIDE)} ({_after(event, start)})", "label fault"
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _after(event: Arrow, start: datetime) -> str:
    return f"{(event.at - start).total_seconds() * 1000:+.1f} ms"


def _arrow(root: ET.Element, event: Arrow, y: int, start: datetime) -> None:
    lane, account = LANES[event.lane], LANES["account"]
    begin, end = (account, lane) if event.kind == "read" else (lane, account)
    style = f"{event.kind} {event.lane}"
    side = 1 if end > begin else -1
    _line(root, begin, y, end - 8 * side, y, style)
    points = f"{end},{y} {end - 10 * side},{y - 5} {end - 10 * side},{y + 5}"
    ET.SubElement(root, "polygon", {"points": points, "class": style})
    _text(root, (lane + account) // 2, y - 8, event.label, f"label {style}")
    _text(root, lane + (-56 if event.lane == "lost" else 56), y + 4, _after(event, start), "clock")


def _line(root: ET.Element, x1: int, y1: int, x2: int, y2: int, style: str) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    ET.SubElement(root, "line", {**{name: str(value) for name, value in ends.items()}, "class": style})


def _text(root: ET.Element, x: int, y: int, text: str, style: str) -> None:
    ET.SubElement(
        root, "text", {"x": str(x), "y": str(y), "class": style, "text-anchor": "middle"}
    ).text = text
