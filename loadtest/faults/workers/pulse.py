"""How punctual this process is: for how long did one of its threads, or the answer to it, keep it waiting?

A renewal thread needs the processor, and an answer of the server, once in each share of the lease. On a machine that
gives it neither in time, the lease ends as by a pause. That shows nothing of the lock.
"""

from __future__ import annotations

import os
import threading
import time

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

#: seconds between two beats: as often as the most impatient renewal looks at its lease
EVERY = 0.05


class Pulse:
    """A thread that asks the server at each beat. `begun`: when the first one counts from, by the monotonic clock.
    `longest`: the longest time by which a beat was late, in seconds."""

    def __init__(self, begun: float) -> None:
        self.longest = 0.0
        self._due, self._over = begun, threading.Event()
        self.thread = threading.Thread(target=self._beat, name="pulse", daemon=True)
        self.thread.start()

    def _beat(self) -> None:
        with Redis.from_url(os.environ["REDIS_URL"], retry=Retry(NoBackoff(), 0), socket_timeout=5) as client:
            while not self._over.wait(EVERY):
                try:
                    client.ping()
                except RedisError:
                    continue  # then the server did not answer: no beat
                self._note()

    def _note(self) -> None:
        now = time.monotonic()
        self.longest, self._due = max(self.longest, now - self._due - EVERY), now

    def end(self) -> float:
        """Return `longest`, up to now."""
        self._over.set()
        return max(self.longest, time.monotonic() - self._due - EVERY)
