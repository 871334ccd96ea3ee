"""The results as a table in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table


def table(results: Iterable[dict[str, Any]]) -> Table:
    made = Table("case", "form", "verdict", "faults needed", "by chance", "schedules", "s", "speed")
    for result in results:
        for each in result["broken"]:
            made.add_row(result["case"], *row(each), style="red")
        for each in result["mended"]:
            made.add_row("", *row(each))
        made.add_section()
    return made


def row(form: dict[str, Any]) -> tuple[str, ...]:
    needed = needs(form) if "faults" in form else within(form)
    verdict = "exhausted" if form["verdict"] == "kept" else form["verdict"]
    told = form["form"], verdict, needed, chance(form), str(form["schedules"]), str(form["seconds"])
    return *told, speed(form)


def needs(form: dict[str, Any]) -> str:
    return ", ".join(each.split()[0] for each in form["faults"]) or "none"


#: fault of `bounds` → one of them
_ONE = {"crashes": "crash", "lost_replies": "lost reply", "pauses": "pause"}


def within(form: dict[str, Any]) -> str:
    """The faults under which a mended form was exhausted."""
    return ", ".join(f"≤ {_counted(number, word)}" for word, number in form["bounds"].items()) or "none"


def _counted(number: int, word: str) -> str:
    return f"{number} {_ONE.get(word, word) if number == 1 else word.replace('_', ' ')}"


def chance(form: dict[str, Any]) -> str:
    found = form.get("by_chance")
    if not found:
        return ""
    return f"not tried: {found['untimed']}" if "untimed" in found else f"{found['found']} of {found['tries']}"


def speed(form: dict[str, Any]) -> str:
    return f"× {form['speed']:.2f}" if form.get("speed") else ""
