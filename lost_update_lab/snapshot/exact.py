"""Numbers with a point, as the database has them: a float has 17 digits, and loses the last ones of a large amount.

It also writes 100.0 for 100.00, and 1e-16 for a small amount.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any


class Exact(Decimal):
    """A number that is written with all its digits, and with no exponent."""

    def __str__(self) -> str:
        return format(self, "f")

    __repr__ = __str__


def read(text: str | bytes) -> Any:
    """JSON, in which each number with a point is Exact."""
    return json.loads(text, parse_float=Exact)


def number(value: Decimal) -> str:
    """A text that two numbers share if they are equal, whatever zeros are written at their ends."""
    return format(value.normalize(), "f") if value.is_finite() else str(value)
