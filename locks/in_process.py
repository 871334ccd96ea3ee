"""in-process: a threading.Lock for each name.

    process 1, A: acquire → taken          process 2, C: acquire → taken: another lock of the same name
    process 1, B: acquire … waits
    A: read 100, write 110
                                           C: read 100, write 120           A's 10 are gone

Guarantees   mutual exclusion between the threads of one process, and nothing between two processes.
Breaks when  there is a second process: a second web worker, a second host. With one worker on a laptop every
             test passes. A lock that is held during a fork stays held in the child for ever.
Costs        no round trip: about 100 ns.
Source       the Python standard library; the hot-account article begins with it (A3).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import ClassVar

from locks.base import NO_FENCING, NO_LEASE, NO_RENEWER, Lock
from locks.errors import LockNotHeld
from locks.hazards import NONE
from locks.timing import checked_wait

_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

#: shared with file-lock, the other lock without a server
ASKS_NO_SERVER = dict.fromkeys(
    (
        "race",
        "release-after-loss",
        "release-overtaken",
        "crash-in-acquire",
        "fairness",
        "noscript",
        "lost-reply",
        "acquire-repeated",
        "release-repeated",
        "server-restart",
        "failover",
    ),
    "it has no server: no command to stop at, no reply to lose, no key to delete",
)


class InProcessLock(Lock):
    """A threading.Lock for each name; each process has its own set."""

    slug = "in-process"
    within = "process"
    title = "threading.Lock for each name"
    source = "A3, B1: a lock in the process"
    guarantees = "mutual exclusion between threads of one process"
    breaks_when = "there is a second process"
    round_trips = "0"
    withstands = NONE
    fails: ClassVar[dict[str, str]] = {"mutual-exclusion": "each process has a lock of its own"}
    not_applicable: ClassVar[dict[str, str]] = (
        ASKS_NO_SERVER
        | NO_LEASE
        | NO_RENEWER
        | NO_FENCING
        | dict.fromkeys(
            ("holder-crash", "waiter-crash", "waiter-cancelled"),
            "the case needs two processes, and this lock does not exclude between processes",
        )
    )

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._lock, self._held = _LOCKS[self.name], False

    def acquire(self, timeout: float | None = None) -> bool:
        wait = checked_wait(timeout)
        if self._lock.acquire(timeout=-1 if wait is None else max(0.0, wait)):
            self._held = True
            return True
        return False

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing."""
        if not self._held:
            raise LockNotHeld(f"{self.name}: release without holding it")
        self._held = False
        self._lock.release()

    @property
    def held(self) -> bool:
        return self._held
