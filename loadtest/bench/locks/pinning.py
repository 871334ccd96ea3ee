"""One CPU for servers and clients: the CPU that a process lands on changes these figures by a factor of two to five."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

MISSING = "this system cannot pin processes to a CPU: all figures are unpinned"


def can_pin() -> bool:
    return hasattr(os, "sched_setaffinity")


@contextmanager
def pinned(wanted: bool = True) -> Iterator[None]:
    """Processes that are started inside run on one CPU, the last one that this process may use."""
    if not (wanted and can_pin()):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
