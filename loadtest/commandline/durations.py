"""Times as people write them: `5ms`, `0.5s`, `2` (seconds), and spans `0-5ms`."""

from __future__ import annotations

import re

_ONE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m)?")
_FACTOR = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
LONGEST = 86_400.0  # seconds: a day


def duration(text: str) -> float:
    """Return seconds. Raises ValueError that shows how to write one."""
    match = _ONE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is no duration: write 5ms, 0.5s or 2 (seconds)")
    return float(match[1]) * _FACTOR[match[2]]


def length(text: str) -> float:
    """Return seconds, of a run that is to end by them. Raises ValueError for 0, and for more than a day."""
    if not 0 < (seconds := duration(text)) <= LONGEST:
        raise ValueError(f"{text!r}: more than 0, and a day ({LONGEST:g}) at most")
    return seconds


def span(text: str) -> tuple[float, float]:
    """Return (least, most) seconds of `0-5ms`, `1ms-0.1s` or `5ms` (from 0 on). Raises ValueError."""
    least, dash, most = text.partition("-")
    if not dash:
        return 0.0, duration(text)
    unit = _ONE.fullmatch(most.strip())
    if unit and unit[2] and least.strip()[-1:].isdigit():
        least += unit[2]  # the unit of 0-5ms is meant for both
    low, high = duration(least), duration(most)
    if low > high:
        raise ValueError(f"{text!r}: the least comes first")
    return low, high
