"""Short switch intervals for threads that feed a server.

Python lets a thread compute for 5 ms while another one waits for its turn. In that time a server session processes all
that its socket holds, and then idles. The setting is process-wide, so it is active only while it is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

TURN = 0.000_05  # seconds
_lock = Lock()
_inside = 0
_usual = 0.0


@contextmanager
def short_turns() -> Iterator[None]:
    """Use short switch intervals inside. The last thread that leaves restores the previous interval."""
    global _inside, _usual  # noqa: PLW0603
    with _lock:
        if not _inside:
            _usual = sys.getswitchinterval()
            sys.setswitchinterval(min(TURN, _usual))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setswitchinterval(_usual)
