"""A loss with the fault drawn in it: in the timeline of faults.json, and in the report."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.core.management import call_command

from ledger.reconcile import timeline
from loadtest.faults.scene.record import Record, moments, put_right, with_loss
from tests.ledger.history import START, History

#: the victim reads, is stopped, is overtaken by a rival that had read the same, is continued and writes
STEPS = [
    "victim reads 100",
    "SIGSTOP",
    "rival writes 130 (+30)",
    "SIGCONT",
    "victim writes 110 (+10): 30 lost",
]


def cell() -> dict[str, Any]:
    history = History()
    history.write("rival", 30, None, worker="rival", read_tick=0.6)
    history.write("victim", 10, None, worker="victim", read_tick=0.1)
    record = Record(began=0.0, opened=START)
    record.fault("SIGCONT", 0.0015)
    record.fault("SIGSTOP", 0.0004)
    record.note("seen", at=0.0)
    told = {**history.books().as_json(), "timeline": record.timeline, "began": START.isoformat()}
    return {
        **told,
        "strategy": "token",
        "hazard": "pause",
        "verdict": "lost",
        "agrees": None,
        "fired": {},
        "cause": "",
    }


def test_the_fault_stands_in_the_drawing_where_it_struck() -> None:
    known = cell()
    texts = [
        node.text or ""
        for node in ET.fromstring(timeline.svg(known["first_loss"], moments(known))).iter("text")
    ]
    order = [next(n for n, text in enumerate(texts) if text.startswith(each)) for each in (
        "reads 100", "SIGSTOP (+0.3 ms)", "writes 130 (+30)", "SIGCONT (+1.4 ms)", "writes 110 (+10)",
    )]  # fmt: skip
    assert order == sorted(order)


def test_a_long_fault_does_not_run_out_of_the_drawing() -> None:
    told = timeline.svg(cell()["first_loss"], [(START, "x" * 500)])
    assert max(len(node.text or "") for node in ET.fromstring(told).iter("text")) < 115


def test_what_the_writers_did_stands_in_the_timeline_of_the_cell() -> None:
    told = with_loss(cell())
    seen = [each["what"] for each in told["timeline"] if each["kind"] != "note"]
    assert [each for each in seen if each in STEPS] == STEPS
    assert told["shown_loss"] == "first_loss"


@pytest.mark.parametrize(("tick", "shown"), [(0.5, "first_loss"), (4.5, "last_loss"), (90.0, "last_loss")])
def test_the_loss_that_the_fault_lies_in_is_shown(tick: float, shown: str) -> None:
    """Two losses: of what the crowd did, and of what came later."""
    history = History()
    history.write("a", 10, None, worker="crowd", read_tick=0.1)
    history.write("b", 20, None, worker="crowd", read_tick=0.2)
    history.write("c", 30, "b", worker="victim", read_tick=4.0)
    history.write("d", 5, "b", worker="rival", read_tick=4.1)
    history.write("e", 1, "d", worker="rival", read_tick=5.0)
    told = {**history.books().as_json(), "began": START.isoformat()}
    told["timeline"] = [{"at": tick / 1000, "what": "fault", "kind": "fault"}]
    assert with_loss(told)["shown_loss"] == shown


@pytest.mark.parametrize(("off", "told"), [(60.0, "60 s later"), (-60.0, "60 s earlier")])
def test_a_clock_that_was_moved_does_not_move_the_loss(off: float, told: str) -> None:
    """It stood a minute after the fault, or before the cell had begun."""

    def seen(cell: dict[str, Any]) -> list[tuple[float, str]]:
        return [(step["at"], step["what"]) for step in with_loss(cell)["timeline"] if step["kind"] != "note"]

    calm = seen(cell())
    moved = cell()
    entry = {**moved["first_loss"]["overwritten_by"], "worker": "host:71:main"}
    for key in ("read_at", "written_at"):
        entry[key] = (datetime.fromisoformat(entry[key]) + timedelta(seconds=off)).isoformat()
    moved["first_loss"] = {**moved["first_loss"], "overwritten_by": entry}
    moved["clocks"] = {"71": off}
    by_its_clock = f" (by its own clock {told})"
    want = [
        (at, what.replace("victim", "host:71:main") + by_its_clock * what.startswith("victim"))
        for at, what in calm
    ]
    assert seen(moved) == want
    drawn = timeline.svg(put_right(moved, "first_loss"), moments(moved))
    assert drawn.index("SIGSTOP") < drawn.index("writes 130") < drawn.index("SIGCONT")


def test_nothing_lost_nothing_added() -> None:
    history = History()
    history.write("a", 10)
    told = {**history.books().as_json(), "began": START.isoformat(), "timeline": []}
    assert with_loss(told) == {"shown_loss": None, "timeline": []}


def test_the_report_draws_it(tmp_path: Path) -> None:
    known = cell()
    results = [{**known, **with_loss(known)}]
    (tmp_path / "faults.json").write_text(json.dumps({"environment": {}, "results": results}))
    call_command("report", output=tmp_path)
    html = (tmp_path / "index.html").read_text()
    assert html.count('class="fault"') >= 2
    assert "SIGSTOP (+0.3 ms)" in html
    assert known["first_loss"]["sentence"] in html.replace("&#x27;", "'")
