"""Values of options that argparse refuses with our own words."""

from __future__ import annotations

import json
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def typed(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return `parse` for argparse, which shows the message of an ArgumentTypeError, not that of a ValueError."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error

    return parsed


def whole_number(most: int, *, least: int = 1, why: str = "") -> Callable[[str], int]:
    """Return a type for argparse: whole numbers from `least` to `most`. `why`: what is gained by no more."""

    @typed
    def within(text: str) -> int:
        if text.isdecimal() and len(text) < 20 and least <= int(text) <= most:
            return int(text)
        told = f"{text!r} is not a whole number from {least:,} to {most:,}"
        raise ValueError(f"{told}: {why}" if why else told)

    return within


def writable_folder(text: str | Path) -> Path:
    """Return the folder, which is made if it is missing: a run of minutes is not to find out at its end that nothing
    can be written there. Raises ValueError."""
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = f"nothing can be written there ({error.strerror or error})"
        raise ValueError(f"{folder}: {why}: give a folder; it is created if it is missing") from error
    return folder


def named_value(text: str) -> tuple[str, Any]:
    """Return (name, value) of NAME=VALUE; the value as JSON has it (0.95, true), or as text. Raises ValueError."""
    name, found, value = text.partition("=")
    if not found or not name.isidentifier():
        raise ValueError(f"option {text}: write NAME=VALUE, for example reads=0.95")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def named_values(text: str) -> dict[str, Any]:
    """Return {name: value} of several NAME=VALUE with spaces between. Raises ValueError."""
    return dict(map(named_value, text.split()))


def as_text(values: Mapping[str, Any]) -> str:
    """Return what `named_values` reads back."""
    return " ".join(f"{name}={json.dumps(value)}" for name, value in values.items())
