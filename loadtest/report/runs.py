"""The origin of each evidence file, in words: the command, the time, the machine, and whether it was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

#: names in the environment → names on the page; others are shown unchanged
NAMES = {"changed": "uncommitted changes"}


def run_of(command: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page's data on one file: `command`, `started` ("" if unknown), `stopped`, `facts`."""
    return {
        "command": command,
        "started": _moment(report.get("started")),
        "stopped": bool(report.get("stopped")),
        "facts": facts(report.get("environment", {})),
    }


def facts(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, value) of each fact of the environment, both in words."""
    return [(NAMES.get(name, name), _words(value)) for name, value in environment.items()]


def _words(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    return str(value)


def _moment(text: str | None) -> str:
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M %Z") if text else ""
