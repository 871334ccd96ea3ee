"""What the workers' wall clocks, and the servers', show at the start of every schedule.

The setup runs in real time, and the workers after it, on the same line of time:

    12:00:00.2   the setup writes: valid until 13:00:00.2
    12:00:00.7   it has ended
    12:00:01     every schedule begins; a worker that reads the row an hour and a pause later finds it expired

Where nobody begins such a line (the lab's own strategies have no setup), it is always the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import ceil


class Epoch:
    """`shows`: in seconds since 1970, and whole: each clock can show them. Where it goes into a text, it is asked for
    then, and not when a module is imported."""

    shows = 1_900_000_000.0

    @classmethod
    def time_of_day(cls, passed: int) -> str:
        """What a clock shows when so many µs have passed, in UTC."""
        return (datetime.fromtimestamp(cls.shows, UTC) + timedelta(microseconds=passed)).strftime(
            "%H:%M:%S.%f"
        )

    @classmethod
    @contextmanager
    def begins(cls) -> Iterator[None]:
        """In here every schedule begins now. What was written until now is not later than that."""
        before, cls.shows = cls.shows, float(ceil(time.time()))
        try:
            yield
        finally:
            cls.shows = before
