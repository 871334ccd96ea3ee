"""Leases and waiting: what the locks do with seconds."""

from __future__ import annotations

import random
import time
from collections.abc import Callable


def milliseconds(lease: float) -> int:
    """Return `lease` seconds as whole milliseconds, for PX and PEXPIRE. Raises ValueError below 1 ms."""
    if not lease >= 0.001:
        raise ValueError(f"a lease of {lease!r} s: give 0.001 or more")
    return round(lease * 1000)


def whole_seconds(lease: float) -> int:
    """Return `lease` as the whole seconds that EX and EXPIRE take. Raises ValueError for a fraction."""
    if lease < 1 or lease != int(lease):
        raise ValueError(f"a lease of {lease!r} s: this lock uses EX/EXPIRE, give whole seconds, 1 or more")
    return int(lease)


def poll_until(attempt: Callable[[], bool], poll: float, timeout: float | None, jitter: float = 0.0) -> bool:
    """Call `attempt` every `poll` seconds until it says True (→ True) or `timeout` is over (→ False).

    The last sleep ends at the deadline and is followed by a last attempt: the wait time is kept, not rounded.
    `jitter` 0 … 1: how much of each sleep is left to chance.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while not attempt():
        left = poll * (1 - jitter * random.random())  # noqa: S311
        if deadline is not None:
            left = min(left, deadline - time.monotonic())
        if left <= 0:
            return False
        time.sleep(left)
    return True
