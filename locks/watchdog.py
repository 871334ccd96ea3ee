"""watchdog: SET NX with a lease, and a thread that extends the lease while the work goes on.

    A: SET lock A:uuid NX PX 5000 → OK     A's thread looks every 300 ms, and extends below 1 s
    A: (paused past the lease)
    B:                    SET lock B:uuid NX PX 5000 → OK
    A's thread: PTTL lock → 900, PEXPIRE lock 5000       this is B's lock: the thread never asks whose it is
    A: GET lock → A:uuid  … expires, B acquires …  DEL lock     this deletes B's lock: check and delete are two steps

    and the thread is stopped last:
    A: GET lock → error (a time-out, a lost connection)  the line that stops the thread is never reached
    A's thread: PTTL lock → 900, PEXPIRE lock 5000, …    nobody works, the lock never ends, everyone waits for ever

Guarantees   mutual exclusion while the holder's process runs, its renewal reaches the server, and the server forgets
             nothing. A lock whose holder's process crashes ends with its lease.
Breaks when  the holder is paused past the lease or is cut off, or an error ends its thread: two holders. The thread
             then extends a stranger's lock. A release that is overtaken between GET and DEL deletes its successor's
             lock; so does a DEL that the client sends twice (redis-py's default retry). An error in GET or DEL leaves
             the thread running: the lock is renewed for ever. The thread is an ordinary one, so the process cannot end
             by itself either. A failover loses the key.
Costs        1 round trip to acquire (again every 1 s while waiting), 2 to release, 1 every 300 ms for the thread.
Source       the hot-account article (A15, A16): lease 5 s, a look every 300 ms, extended below 1 s. `watchdog-mended`
             stands beside it.
"""

from __future__ import annotations

import threading
import uuid
from typing import ClassVar

from redis import Redis

from locks.base import AS_PUBLISHED, NO_FENCING, Lock
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.timing import milliseconds, poll_until


class WatchdogLock(Lock):
    """SET NX with a lease and a renewing thread, released by GET, compare and DEL, as published."""

    slug = "watchdog"
    title = "SETNX with a watchdog thread"
    source = "A15, A16: the daemon thread"
    guarantees = (
        "mutual exclusion while the holder runs and its renewal reaches a server that forgets nothing"
    )
    breaks_when = (
        "the holder is paused or cut off; an error ends its renewal, or an error in the release lets it go on"
        " for ever; a release is overtaken before its DEL"
    )
    round_trips = "1 + 2, and 1 each 300 ms"
    lease_step = 0.001
    renews = True
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.OVERRUN,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.STAMPEDE,
        Hazard.CONNECTIONS,
    }
    fails: ClassVar[dict[str, str]] = {
        "release-overtaken": "anything fits between the GET and the DEL",
        "renewal-of-anothers": "the thread never asks whose lock it extends",
        "lost-reply": "an error in the release leaves the thread running: the lock never ends",
        "acquire-repeated": "SET NX refuses it what it has set itself: it waits for its own lease",
        "release-repeated": "DEL does not ask whose lock it is",
        "server-restart": "nothing tells the holder",
        "failover": "the replica has not got the key",
        "fairness": "polling",
    }
    not_applicable: ClassVar[dict[str, str]] = AS_PUBLISHED | NO_FENCING

    def __init__(
        self,
        name: str,
        *,
        redis: Redis,
        lease: float = 5.0,
        poll: float = 1.0,
        look: float = 0.3,
        below: float = 1.0,
    ) -> None:
        """Seconds: `lease` of the key, `poll` between two attempts, `look` between two looks of the thread.
        The thread extends when less than `below` is left."""
        super().__init__(name)
        self.redis, self.lease, self.poll = redis, milliseconds(lease), poll
        self.look, self.below = look, below
        self._stop: threading.Event | None = None

    def acquire(self, timeout: float | None = None) -> bool:
        value = f"{threading.get_ident()}:{uuid.uuid4()}".encode()
        if not poll_until(
            lambda: bool(self.redis.set(self.name, value, nx=True, px=self.lease)), self.poll, timeout
        ):
            return False
        self.token = value
        self._stop = threading.Event()
        # An ordinary thread, as in Java: it is a daemon only where the thread that starts it is one.
        threading.Thread(target=self._watch, args=(self._stop,)).start()
        return True

    def _watch(self, stop: threading.Event) -> None:
        while not stop.is_set():
            # No key gives -2, a key without a lease -1. Whose lock is it? The article does not ask.
            if self.redis.pttl(self.name) < self.below * 1000:
                self.redis.pexpire(self.name, self.lease)
            stop.wait(self.look)

    def release(self) -> None:
        token, self.token = self.token, None
        if self.redis.get(self.name) == token:
            self.redis.delete(self.name)  # anything fits between the GET and the DEL
        if self._stop is not None:
            self._stop.set()  # as published: last, so after an error above the thread goes on

    @property
    def held(self) -> bool:
        return self.token is not None
