"""Values of options that argparse refuses with our own words."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any


def typed(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return `parse` for argparse, which shows the message of an ArgumentTypeError, not that of a ValueError."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error

    return parsed


@typed
def whole_number(text: str) -> int:
    """Return a whole number above 0. Raises ArgumentTypeError."""
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"{text!r} is no whole number above 0")
    return int(text)
