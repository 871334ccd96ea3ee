"""The record of a cell: notes, the fault at its moment, the proof, and the loss drawn beside the fault.

    0.410 s   loss    host:71 reads 100
    0.412 s   note    worker 71 has read and not written; held: …
    0.415 s   fault   SIGSTOP of worker 71
    0.733 s   loss    host:72 writes 130 (+30)
    1.530 s   fault   SIGCONT of worker 71
    1.532 s   loss    host:71 writes 110 (+10): 30 lost

Times are seconds since the cell began. The moments of a loss come from the writers' own clocks. If a hazard has moved a
clock, its moments are corrected here, and the step says by how much the clock was off.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ledger.reconcile.timeline import events
from loadtest.verdict.evidence import Doubt

NOTE, FAULT, LOSS = "note", "fault", "loss"
#: the losses that reconcile keeps. The timeline shows the first one that spans the fault, or else the last
LOSSES = ("first_loss", "worst_loss", "last_loss")


@dataclass(kw_only=True)
class Record:
    """`proof`: the evidence that the hazard fired; "" until it has. `cannot`: why it cannot touch the subject."""

    proof: str = ""
    cannot: str = ""
    timeline: list[dict[str, Any]] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    #: process id of a worker → seconds by which its clock was moved before it posted
    clocks: dict[str, float] = field(default_factory=dict)
    #: when the cell began, by the monotonic clock and by the wall clock
    began: float = field(default_factory=time.monotonic)
    opened: datetime = field(default_factory=lambda: datetime.now(UTC))

    def note(self, told: str, kind: str = NOTE, at: float | None = None) -> None:
        """Add a note. `at`: its time by the monotonic clock, if it is not now."""
        moment = time.monotonic() if at is None else at
        self.timeline.append({"at": round(moment - self.began, 6), "what": told, "kind": kind})

    def fault(self, told: str, at: float | None = None) -> None:
        """Note in a few words what was just done, so that the report can draw it where it struck."""
        self.note(told, FAULT, at)

    def prove(self, told: str) -> None:
        """Record that the hazard fired, with what was seen of it."""
        self.note(told)
        self.proof = f"{self.proof}; {told}" if self.proof else told


def with_loss(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields about a cell's loss: the name of the loss that is shown (None if there is none), and the
    timeline with what its two writers did."""
    steps = list(cell["timeline"])
    shown = _shown(cell)
    if shown:
        steps += _steps(cell, shown, datetime.fromisoformat(cell["began"]))
    return {"shown_loss": shown, "timeline": sorted(steps, key=lambda step: step["at"])}


def put_right(cell: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the cell's loss of this name, with its times corrected for moved clocks."""
    loss = dict(cell[name])
    for which in ("lost", "overwritten_by"):
        if (entry := loss[which]) and (off := _off(cell, entry["worker"])):
            moved = {key: datetime.fromisoformat(entry[key]) for key in ("read_at", "written_at")}
            right = {key: (at - timedelta(seconds=off)).isoformat() for key, at in moved.items()}
            loss[which] = {**entry, **right}
    return loss


def moments(cell: Mapping[str, Any]) -> list[tuple[datetime, str]]:
    """Return each fault with the time at which it struck, by the wall clock."""
    began = datetime.fromisoformat(cell["began"]).timestamp()
    faults = (step for step in cell["timeline"] if step["kind"] == FAULT)
    return [(datetime.fromtimestamp(began + step["at"], UTC), step["what"]) for step in faults]


def _shown(cell: Mapping[str, Any]) -> str | None:
    known = [name for name in LOSSES if cell.get(name)]
    struck = moments(cell)
    for name in known:
        times = [each.at for each in events(put_right(cell, name))]
        if times and any(min(times) <= at <= max(times) for at, _ in struck):
            return name
    return known[-1] if known else None


def _off(cell: Mapping[str, Any], worker: str) -> float:
    """Return the seconds by which the clock of this worker (host:process id:thread) was moved."""
    clocks: Mapping[str, float] = cell.get("clocks", {})
    return next((off for pid, off in clocks.items() if f":{pid}:" in worker), 0.0)


def _steps(cell: Mapping[str, Any], shown: str, began: datetime) -> Iterator[dict[str, Any]]:
    loss = put_right(cell, shown)
    for each in events(loss):
        entry = loss["lost" if each.lane == "lost" else "overwritten_by"]
        lost = f": {abs(loss['amount']):,} lost" if (each.lane, each.kind) == ("by", "write") else ""
        off = _off(cell, entry["worker"])
        told = f" (by its own clock {abs(off):.0f} s {'later' if off > 0 else 'earlier'})" if off else ""
        at = round((each.at - began).total_seconds(), 6)
        yield {"at": at, "what": f"{entry['worker']} {each.label}{lost}{told}", "kind": LOSS}
