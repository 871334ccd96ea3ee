"""The museum of real bugs, from its committed data: the report and the admin list its cases (docs/museum.md)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from loadtest.report.pages import measured

FILE = measured.FOLDER / "museum.json"


@cache
def cases() -> dict[str, dict[str, Any]]:
    """slug → what its run came to. Nothing, where a checkout has no data."""
    if not FILE.exists():
        return {}
    results = json.loads(FILE.read_text(encoding="utf-8"))["results"]
    return {each["case"]: _shown(each) for each in results}


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    broken = [{**each, "needs": _needs(each), "chance": _chance(each)} for each in result["broken"]]
    return {**result, "title": result["text"].partition("\n")[0], "broken": broken}


def _needs(form: dict[str, Any]) -> str:
    return ", ".join(fault.split()[0] for fault in form["faults"]) or "none"


def _chance(form: dict[str, Any]) -> str:
    found = form["by_chance"]
    return f"not tried: {found['untimed']}" if "untimed" in found else f"{found['found']} of {found['tries']}"
