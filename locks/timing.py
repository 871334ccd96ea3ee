"""Leases, polls and wait times: checks the seconds that a lock is given, and waits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

#: seconds, about 31 years: larger numbers overflow in servers, in threads, or in the arithmetic between them
LONGEST = 1_000_000_000

#: seconds, the longest wait on a socket at a time: the system counts milliseconds in 31 bits
A_DAY = 86_400.0


def milliseconds(lease: float, what: str = "a lease", longest: int = LONGEST) -> int:
    """Return `lease` seconds as whole milliseconds, for PX and PEXPIRE. Raises ValueError below 1 ms or above
    `longest` seconds."""
    if not 0.001 <= lease <= longest:
        raise ValueError(f"{what} of {lease!r} s: give 0.001 or more, at most {longest:,}")
    return round(lease * 1000)


def whole_seconds(lease: float) -> int:
    """Return `lease` as the whole seconds that EX and EXPIRE take. Raises ValueError for a fraction or above
    LONGEST."""
    if not 1 <= lease <= LONGEST or lease != int(lease):
        raise ValueError(
            f"a lease of {lease!r} s: this lock uses EX/EXPIRE, give whole seconds, 1 to {LONGEST:,}"
        )
    return int(lease)


def checked_poll(poll: float) -> float:
    """Return `poll`, the seconds between two attempts. Raises ValueError if a waiter would never ask, or always."""
    if not (isinstance(poll, int | float) and 0 < poll <= LONGEST):
        raise ValueError(f"a poll each {poll!r} s: give a number above 0, at most {LONGEST:,}")
    return poll


def checked_cap(cap: float) -> float:
    """Return `cap`, the seconds after which renewal ends (0: none; inf: never). Raises ValueError."""
    if not (isinstance(cap, int | float) and cap >= 0):
        raise ValueError(f"renewal for {cap!r} s: give 0 or more")
    return cap


def checked_wait(timeout: float | None) -> float | None:
    """Return `timeout`, the seconds of a wait (0 or less: one attempt; None: as long as it takes). Raises ValueError
    above LONGEST."""
    if timeout is None or timeout <= LONGEST:
        return timeout
    raise ValueError(
        f"a wait of {timeout!r} s: give seconds, at most {LONGEST:,}, or None for as long as it takes"
    )


def ends_at(timeout: float | None) -> float | None:
    """Return when a wait of `timeout` seconds ends, on `time.monotonic()`'s clock (None: never). Raises ValueError."""
    timeout = checked_wait(timeout)
    return None if timeout is None else time.monotonic() + timeout


def poll_until(attempt: Callable[[], bool], poll: float, timeout: float | None, jitter: float = 0.0) -> bool:
    """Call `attempt` every `poll` seconds until it returns True (→ True) or `timeout` is over (→ False).

    The last sleep ends at the deadline, and one last attempt follows it. So the wait time is exact, not rounded.
    `jitter`: the random share of each sleep, 0 … 1.
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
