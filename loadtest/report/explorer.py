"""The explorer's part of the report: claims and findings, and for each counterexample a drawing and a page of steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from loadtest.findings.explored import HAZARD_OF
from loadtest.report import lanes
from loadtest.report.explorer_table import breaks_claim, ended, so_far
from lost_update_lab.telling.diagram import cell
from lost_update_lab.telling.picture import rows, seconds, workers

#: the folder of the pages, beside index.html
FOLDER, SCRIPT = "explore", "step.js"
#: how to recognise a page of this module
MARK = f'<script src="{SCRIPT}"'


def context(report: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the part of explore.json that index.html shows."""
    if not report:
        return None
    drawn = [
        {**e, "svg": mark_safe(lanes.svg(e))}  # noqa: S308  (ElementTree escapes)
        for e in examples(report)
    ]
    hazards = list(map(str, HAZARD_OF.values()))
    anchors = {(e["strategy"], e["hazard"]): e["id"] for e in drawn}
    lines = [
        {
            **result,
            "so_far": so_far(result),
            "ended": ended(result),
            "cells": [_cell(result, hazard, anchors) for hazard in hazards],
        }
        for result in report["results"]
    ]
    return {"hazards": hazards, "rows": lines, "examples": drawn, "options": report["options"]}


def _cell(result: Mapping[str, Any], hazard: str, anchors: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    if why := result["not_applicable"].get(hazard):
        return {"word": "", "sign": "·", "why": f"{hazard} cannot touch it: {why}"}
    word = result["under"].get(hazard)
    if word is None:
        return {"word": "", "sign": "–", "why": f"{hazard} was not tried"}
    claimed = "claims to withstand it" if hazard in result["claims"] else "does not claim to withstand it"
    broken = breaks_claim(result, hazard)
    return {
        "word": word,
        "sign": "",
        "why": f"{hazard}: {claimed}",
        "broken": broken,
        "id": anchors.get((result["strategy"], hazard)),
    }


def examples(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each counterexample with its `strategy`, `hazard`, `replay` id, `page`, and the `id` of its drawing."""
    for result in report["results"]:
        for hazard, example in result["counterexamples"].items():
            name = re.sub(r"[^\w.-]+", "-", f"{result['strategy']}-{hazard}")
            yield {
                **example,
                "strategy": result["strategy"],
                "hazard": hazard,
                "replay": example["id"],
                "id": f"schedule-{name}",
                "page": f"{FOLDER}/{name}.html",
                "proof": example["sentences"][-1],
                "told": example["sentences"][:-1],
            }


def write_pages(folder: Path, report: Mapping[str, Any] | None) -> list[Path]:
    """Write a page for each counterexample under `folder`, and the script that they share. Returns the pages.

    Pages of earlier runs are deleted, because nothing links to them any more. Other files are left alone.
    """
    written = []
    for example in examples(report) if report else ():
        path = folder / example["page"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_to_string("loadtest/schedule.html", page(example)))
        written.append(path)
    for path in set((folder / FOLDER).glob("*.html")) - set(written):
        if MARK in path.read_text(errors="replace"):
            path.unlink()
    if written:
        script = files(__package__).joinpath(SCRIPT).read_text(encoding="utf-8")
        (folder / FOLDER / SCRIPT).write_text(script)
    return written


def page(example: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a counterexample's page: its steps, each with the state of the servers after it."""
    names, opening = workers(example["steps"]), example["opening"]
    longest: dict[str, int] = {}
    for step in example["steps"]:
        for key in (step["state"] or {}).get("keys", ()):
            longest[key["key"]] = max(longest.get(key["key"], 1), key["ttl_ms"] or 0)
    steps, at = [], None
    for row in rows(example["steps"], opening):
        step = row.step
        own = [
            {"name": name, "here": name == step["worker"], "lane": row.lanes[name], "place": place}
            for place, name in enumerate(names)
        ]
        steps.append(
            {
                "lanes": own,
                "text": cell(row),
                "fault": row.fault,
                "server": not step["worker"],
                "time": "" if step["at"] == at else seconds(step["at"]),
                "sentence": step["sentence"],
                "effects": row.effects,
                "state": _state(step["state"], longest),
            }
        )
        at = step["at"]
    return {"example": example, "names": names, "steps": steps, "opening": _state(opening, longest)}


def _state(state: Mapping[str, Any] | None, longest: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the state of the servers, with the longest lifetime of each key."""
    if state is None:
        return None
    keys = [
        {
            **key,
            "most": longest.get(key["key"], 1),
            "left": None if key["ttl_ms"] is None else seconds(key["ttl_ms"] * 1000),
        }
        for key in state["keys"]
    ]
    return {**state, "keys": keys}
