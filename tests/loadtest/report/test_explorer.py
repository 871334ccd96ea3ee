"""The explorer's part of the page: the matrix, the schedules drawn, and a page for each to step through."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from django.core.management import call_command

from loadtest.report import lanes
from tests.lost_update_lab.telling.test_picture import STEPS, state

NASTY = "<script>alert(1)</script>"


def example(**changed: Any) -> dict[str, Any]:
    return {
        "id": "naive-lock/l/2a",
        "verdict": "lost",
        "faults": ["pause"],
        "confirmed": 10,
        "opening": state(),
        "steps": [*STEPS, {**STEPS[-1], "command": NASTY, "sentence": NASTY}],
        "sentences": [*(step["sentence"] for step in STEPS), "20 lost with 1 operation"],
        **changed,
    }


def explored(folder: Path, **changed: Any) -> Path:
    result = {
        "strategy": "mine:lock",
        "verdict": "lost",
        "claims": ["pause", "contention"],
        "under": {"contention": "kept", "pause": "lost", "crash-holding": "inconclusive"},
        "not_applicable": {"failover": "nothing is kept there"},
        "schedules": 1234,
        "exhausted": True,
        "counterexamples": {"pause": example()},
        **changed,
    }
    bounds = {"workload": "deposits", "workers": 2, "faults": 1, "work": 0, "slack": 100}
    (folder / "explore.json").write_text(
        json.dumps({"environment": {"cores": 2}, "options": bounds, "results": [result]})
    )
    call_command("report", output=folder)
    return folder


def test_the_matrix_has_a_word_for_each_fault_and_marks_a_broken_claim(tmp_path: Path) -> None:
    html = (explored(tmp_path) / "index.html").read_text()
    cells = re.findall(r'<td title="(.*?)">(.*?)</td>', html)
    words = {title.split(":")[0].split(" ")[0]: re.sub(r"<.*?>", "", text) for title, text in cells}
    assert words["contention"] == "kept"
    assert words["pause"] == "lost&nbsp;!"
    assert words["crash-holding"] == "inconclusive"
    assert words["failover"] == "·"
    assert words["lost-reply"] == "–"
    assert "1,234" in html
    assert "exhausted" in html


def test_each_counterexample_is_drawn_and_has_a_page(tmp_path: Path) -> None:
    html = (explored(tmp_path) / "index.html").read_text()
    assert "mine:lock/" not in html
    for wanted in ('<svg role="img"', "20 lost with 1 operation", "--replay naive-lock/l/2a", "10 of 10"):
        assert wanted in html
    [link] = re.findall(r'href="(explore/.*?)"', html)
    page = (tmp_path / link).read_text()
    assert page.count('class="step') == len(STEPS) + 3  # two more, and the list itself
    assert "5 s left" in page
    assert '<dd class="money">120</dd>' in page
    assert (tmp_path / "explore" / "step.js").exists()


def test_pages_of_earlier_runs_go_and_nobody_elses(tmp_path: Path) -> None:
    [ours] = explored(tmp_path).glob("explore/*.html")
    earlier, foreign = ours.with_name("token-pause.html"), ours.with_name("notes.html")
    earlier.write_text(ours.read_text())
    foreign.write_text("<p>mine</p>")
    explored(tmp_path)
    assert set(tmp_path.glob("explore/*.html")) == {ours, foreign}


def test_no_script_in_the_pages_but_the_one_beside_them(tmp_path: Path) -> None:
    folder = explored(tmp_path)
    for path in (folder / "index.html", *folder.glob("explore/*.html")):
        html = path.read_text()
        assert NASTY not in html
        assert re.findall(r"<script[^>]*>[^<]*", html) == (
            [] if path.parent == folder else ['<script src="step.js">']
        )
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", html)
        addresses = re.findall(r"""(?:\ssrc=|\shref=|url\()["']?([^"'\s>)]+)""", html)
        assert not [a for a in addresses if re.match(r"\w+:|//", a)]


def test_the_drawing_says_who_holds_the_lock_who_stands_still_and_what_changed() -> None:
    root = ET.fromstring(lanes.svg(example()))
    lines = [node.get("class") or "" for node in root.iter("line")]
    texts = [node.text for node in root.iter("text")]
    assert "held w0" in lines
    assert "life stands" in lines
    assert "life waits" in lines
    assert "↯ crashes" in texts
    assert "balance 100 → 120" in texts


def test_a_schedule_without_states_is_drawn_too(tmp_path: Path) -> None:
    blind = [{**step, "state": None} for step in STEPS]
    folder = explored(tmp_path, counterexamples={"pause": example(opening=None, steps=blind)})
    assert "held" not in lanes.svg(example(opening=None, steps=blind))
    assert "SET lock" in next(folder.glob("explore/*.html")).read_text()


def test_what_was_not_run_says_why(tmp_path: Path) -> None:
    changed = {"verdict": "not-run", "reason": "install zookeeper", "under": {}, "counterexamples": {}}
    folder = explored(tmp_path, **changed)
    assert "install zookeeper" in (folder / "index.html").read_text()
    assert not (folder / "explore").exists()
