"""Quick renewals: threads that renew take their turns sooner, while the lease stays long enough for any machine."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from locks import LOCKS
from locks.fair_lock import renewal

FASTER = 40  # turns for each one that a lock would take: with a lease of 30 s, one every 0.25 s or 0.4 s

_alone, _users = threading.Lock(), [0]


class _SoonOver(threading.Event):
    """The event of a thread that renews a holding, which waits only for its next turn or for the end of the holding."""

    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(timeout and timeout / FASTER)


def _sleep(seconds: float) -> None:
    time.sleep(seconds / FASTER)


#: the modules of the locks that renew themselves with a thread which waits for an event
_MODULES = {sys.modules[lock.__module__] for lock in LOCKS.values() if getattr(lock, "renews", False)}
_QUICK = SimpleNamespace(**{**vars(threading), "Event": _SoonOver})
_PATCHES = (
    patch.object(renewal, "TURNS", FASTER * renewal.TURNS),
    patch("locks.reentrant.time", SimpleNamespace(sleep=_sleep)),
    *(patch.object(module, "threading", _QUICK) for module in _MODULES if hasattr(module, "threading")),
)


@contextmanager
def quick_turns() -> Iterator[None]:
    """Applies to the whole process while any cell is inside, because cells of one case run side by side."""
    _enters(+1)
    try:
        yield
    finally:
        _enters(-1)


def _enters(step: int) -> None:
    with _alone:
        _users[0] += step
        if _users[0] == max(step, 0):  # the first one in, or the last one out
            for each in _PATCHES:
                each.start() if step > 0 else each.stop()
