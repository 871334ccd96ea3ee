"""fair-lock as one has it who has used it before.

Its short way begins with the third section, and is that of an acquire without a time-out: a new object that is asked
with one, as most cases do it, only ever goes the long way.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from redis import Redis

from locks import LOCKS, LockError, LockFactory
from locks.fair_lock import FairLock


class WarmFairLock(FairLock):
    """Its connection is open and its questions are packed."""

    slug = "fair-lock-warm"

    def __init__(self, name: str, *, redis: Redis, lease: float = 10.0) -> None:
        super().__init__(name, redis=redis, lease=lease)
        for _ in range(3):
            with suppress(LockError):  # no server: then it is the case's to find out
                if self.acquire(timeout=0.0):
                    self.release()


def takes(lock: Any, timeout: float = 0.0) -> bool:
    """Acquire it while nobody is inside: whoever goes the short way has no time-out."""
    return bool(lock.acquire() if isinstance(lock, WarmFairLock) else lock.acquire(timeout=timeout))


#: what the cases are put to: slug → lock
SUBJECTS: dict[str, LockFactory] = {**LOCKS, WarmFairLock.slug: WarmFairLock}
