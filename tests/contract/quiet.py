"""fair-lock that asks quietly each time, like a process whose last release woke a waiter.

An acquire with a time-out of 0 still asks with a reply, because it takes no place in the queue.
"""

from __future__ import annotations

from typing import Any

from locks import LOCKS, LockFactory
from locks.fair_lock import FairLock


class QuietFairLock(FairLock):
    """Each first question has no reply."""

    slug = "fair-lock-quiet"

    def acquire(self, timeout: float | None = None) -> bool:
        self._home.questions.busy = True
        return super().acquire(timeout)


def takes(lock: Any, timeout: float = 0.0) -> bool:
    """Acquire it while no other client is inside."""
    return bool(lock.acquire() if isinstance(lock, QuietFairLock) else lock.acquire(timeout=timeout))


#: the locks that go through the cases: slug → lock
SUBJECTS: dict[str, LockFactory] = {**LOCKS, QuietFairLock.slug: QuietFairLock}
