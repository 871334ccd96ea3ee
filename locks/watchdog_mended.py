"""watchdog-mended: the watchdog with an owner. Its thread renews only its own lock, and is stopped first.

    A: SET lock a7f3 NX PX 5000 → OK        A's thread: compare-and-extend a7f3 every third of the lease
    A: (paused past the lease)
    B:                    SET lock 91c2 NX PX 5000 → OK
    A's thread: compare-and-extend a7f3 → 0        the lock is lost: the thread ends, and soon `held` is False
    A: write 110                                   too late to learn it: B's write is in danger all the same
    A: stops the thread, compare-and-delete a7f3 → 0: LockLost

Guarantees   mutual exclusion while the holder's process runs and its renewal reaches a server that forgets nothing.
             Nobody renews or releases another's lock. No renewal outlives the release, whatever the release
             raises. The thread is a daemon: it never keeps a process alive.
Breaks when  the holder is paused past the lease, or is cut off (two holders, and the first hears of it too late); the
             server loses the key, or its clock jumps. A holder whose business thread dies without a release keeps
             the lock for as long as its process lives.
Costs        1 round trip to acquire (again every `poll` while waiting), 1 to release, 1 every third of the lease.
Source       ours: `watchdog` (A15, A16) with the token lock's checks.
"""

from __future__ import annotations

import threading
import time
from typing import ClassVar

from redis import Redis

from locks.base import NO_FENCING
from locks.errors import LockUnavailable
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.server import typed_errors
from locks.token_lock import TokenLock


class WatchdogMendedLock(TokenLock):
    """`token` with a thread that renews it."""

    slug = "watchdog-mended"
    title = "Watchdog with an owner, stopped first"
    source = "A15, A16: the daemon thread, mended; ours"
    guarantees = "as `token`, for a section of any length while its renewal reaches the server"
    breaks_when = (
        "the holder is paused or cut off past the lease; the server loses the key or its clock jumps"
    )
    round_trips = "1 + 1, and 1 each third of the lease"
    renews = True
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.OVERRUN,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.LOST_REPLY,
        Hazard.STAMPEDE,
        Hazard.CONNECTIONS,
    }
    fails: ClassVar[dict[str, str]] = TokenLock.fails
    not_applicable: ClassVar[dict[str, str]] = NO_FENCING

    def __init__(self, name: str, *, redis: Redis, lease: float = 5.0, poll: float = 0.05) -> None:
        """Seconds: `lease` of the key, `poll` between two attempts."""
        super().__init__(name, redis=redis, lease=lease, poll=poll)
        self._stop = threading.Event()

    def _granted(self, token: bytes, until: float) -> None:
        super()._granted(token, until)
        self._stop = threading.Event()
        threading.Thread(target=self._renew, args=(self._stop, token), daemon=True).start()

    def _renew(self, stop: threading.Event, token: bytes) -> None:
        """Renew the lock of this `token` until it is released, or lost: then `held` ends with the lease."""
        while not stop.wait(self.lease / 3000):
            asked = time.monotonic()
            try:
                with typed_errors(self.name):
                    extended = self._start_again(token)
            except LockUnavailable:
                continue  # the server may be back before the lease is over
            if not extended or self.token is not token:
                return
            self._valid_until = asked + self.lease / 1000

    def release(self) -> None:
        """Raises LockNotHeld without a holding, LockLost when the lease had ended before."""
        self._stop.set()
        super().release()
