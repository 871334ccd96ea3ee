"""Leases and waiting: what the locks do with seconds."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from math import inf, isnan


def milliseconds(lease: float) -> int:
    """Return `lease` seconds as whole milliseconds, for PX and PEXPIRE. Raises ValueError below 1 ms."""
    if not 0.001 <= lease < inf:
        raise ValueError(f"a lease of {lease!r} s: give 0.001 or more, and an end")
    return round(lease * 1000)


def whole_seconds(lease: float) -> int:
    """Return `lease` as the whole seconds that EX and EXPIRE take. Raises ValueError for a fraction."""
    if lease < 1 or lease != int(lease):
        raise ValueError(f"a lease of {lease!r} s: this lock uses EX/EXPIRE, give whole seconds, 1 or more")
    return int(lease)


def checked_poll(poll: float) -> float:
    """Return `poll`, the seconds between two attempts. Raises ValueError where a waiter would never, or always, ask."""
    if not (isinstance(poll, int | float) and 0 < poll < inf):
        raise ValueError(f"a poll each {poll!r} s: give a number above 0")
    return poll


def checked_cap(cap: float) -> float:
    """Return `cap`, the seconds after which renewal ends (0: none; inf: never). Raises ValueError."""
    if not (isinstance(cap, int | float) and cap >= 0):
        raise ValueError(f"renewal for {cap!r} s: give 0 or more")
    return cap


def ends_at(timeout: float | None) -> float | None:
    """When a wait of `timeout` seconds ends, on `time.monotonic()`'s clock; None: never. Raises ValueError."""
    if timeout is None:
        return None
    if isnan(timeout):
        raise ValueError("a wait of nan s: give seconds, or None for as long as it takes")
    return time.monotonic() + timeout


def poll_until(attempt: Callable[[], bool], poll: float, timeout: float | None, jitter: float = 0.0) -> bool:
    """Call `attempt` every `poll` seconds until it says True (→ True) or `timeout` is over (→ False).

    The last sleep ends at the deadline and is followed by a last attempt: the wait time is kept, not rounded.
    `jitter` 0 … 1: how much of each sleep is left to chance.
    """
    until = ends_at(timeout)
    while not attempt():
        left = poll * (1 - jitter * random.random())  # noqa: S311
        if until is not None:
            left = min(left, until - time.monotonic())
        if left <= 0:
            return False
        time.sleep(left)
    return True
