"""Where each evidence file comes from, in words: which command, when, whether to its end, on what machine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

#: names of the environment → as the page has them; others are shown as they are
NAMES = {"changed": "uncommitted changes"}


def run_of(command: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page says of one file: `command`, `started` ("" if it has none), `stopped`, `facts`."""
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
