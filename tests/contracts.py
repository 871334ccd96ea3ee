"""What is promised to programs that call the commands: their options, and the fields of their JSON (contracts.json).

A path names a field: `results.measured.first_loss.at`. `*` stands for each element of a list, or each value of an
object whose keys are names; `measured` and `not-run` for the results of that kind. A null holds no further fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONTRACTS: dict[str, Any] = json.loads(Path(__file__).with_name("contracts.json").read_text())


def lost(name: str, report: Any) -> list[str]:
    """Return the fields that the file `name` promises and `report` has not."""
    return [path for path in CONTRACTS["fields"][name] if not _has(report, path.split("."))]


def _has(value: Any, path: list[str]) -> bool:
    if not path or value is None:
        return True
    first, *rest = path
    if first == "*":
        return all(_has(each, rest) for each in (value.values() if isinstance(value, dict) else value))
    if isinstance(value, list):
        return all(_has(each, rest) for each in value if _kind(each) == first)
    return first in value and _has(value[first], rest)


def _kind(result: dict[str, Any]) -> str:
    if result["verdict"] == "not-run":
        return "not-run"
    return "measured" if "opening" in result or result.get("schedules") else "broken off"


def options(parser: Any, before: str = "") -> Iterator[str]:
    """Yield the options of a command and of its subcommands: each by its longest name."""
    for action in parser._actions:
        if action.option_strings:
            yield before + max(action.option_strings, key=len)
        elif action.choices and hasattr(action, "_name_parser_map"):
            for name, inner in action.choices.items():
                yield before + name
                yield from options(inner, f"{before}{name} ")
        else:
            yield f"{before}<{action.dest}>"
