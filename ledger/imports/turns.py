"""Short turns for threads that feed a server.

Python lets a thread compute for 5 ms while another one waits for its turn. In that time a session of the server works
off all that its socket holds, and stands still. The setting is the whole process's, so it is in force only as long as
somebody needs it.
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
    """Threads take short turns inside of it. When the last one leaves it, it is as it was before the first one came."""
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
