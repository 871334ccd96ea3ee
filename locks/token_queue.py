"""token-queue: the token lock with a queue. The release hands the lock to the first waiter, and wakes only that one.

    A: enter → inside
    B: enter → queued; BLPOP wake:91c2        C: enter → queued; BLPOP wake:c04d
    A: leave: SET lock 91c2, RPUSH wake:91c2        the lock is never free in between, so nobody can barge in
    B: woken; enter → inside                  C: sleeps on
    A: enter → queued, behind C

    and it breaks as `token` does:
    B: (paused past its lease)                C: (asks again, the lock is free) inside, read 100, write 120
    B: write 110                                                                  C's 20 are gone

Guarantees   the same as `token`. Waiters are served in the order in which they came. A waiter that crashed or gave up
             delays new callers by at most one lease, its own: the queue drops it when it has not been heard of for a
             lease, and a lock that was handed to it ends at the same moment. It delays a waiter that already sleeps
             behind it by a third of the sleeper's lease more, because nobody wakes that sleeper.
Breaks when  `token` breaks. A sleeping waiter occupies one of its client's connections. If threads share a client
             whose pool is no larger than the number of waiters, none is left for the holder. Its release then raises
             LockUnavailable, and the lock stays until its lease is over.
Costs        1 round trip to acquire, 1 to release; a waiter 3 (enter, BLPOP, enter), and 2 every third of a lease.
Source       ours, after MCS queue locks; `fair-lock` is its fast sister.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import ClassVar

from redis import Redis

from locks.base import NO_FENCING, NO_RENEWER, without
from locks.errors import LockError, LockLost
from locks.server import LuaScript, longest_block, typed_errors
from locks.timing import ends_at
from locks.token_lock import TokenLock

#: a server at hz 10 ends a blocking command up to 0.1 s late, so a waiter polls at the end of its wait time
SERVER_TICK = 0.1


class TokenQueueLock(TokenLock):
    """`token` with a fair queue, in one script."""

    slug = "token-queue"
    title = "Token lock with a fair queue"
    source = "ours, after MCS queue locks (F9)"
    guarantees = "as `token`; waiters are served in the order in which they came"
    round_trips = "1 + 1; a waiter 3"
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated", "fairness")
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    script = LuaScript("token_queue.lua")

    def __init__(self, name: str, *, redis: Redis, lease: float = 10.0) -> None:
        """`lease` of the key in seconds."""
        super().__init__(name, redis=redis, lease=lease)
        self._keys = [self.name, f"{{{self.name}}}:queue", f"{{{self.name}}}:living"]
        self._wake = f"{{{self.name}}}:wake:"  # one hash slot for all of them
        self._sleep = min(lease / 3, longest_block(redis))  # seconds between two signs of life

    def acquire(self, timeout: float | None = None) -> bool:
        token = secrets.token_hex(16).encode()
        deadline = ends_at(timeout)
        inside = False
        try:
            with typed_errors(self.name):
                inside = self._wait(token, deadline)
        finally:
            if (
                not inside
            ):  # gave up, interrupted, or no reply: leave the queue, and the lock if it was handed over
                with contextlib.suppress(LockError), typed_errors(self.name):
                    self._ask("leave", token)
        return inside

    def _wait(self, token: bytes, deadline: float | None) -> bool:
        wake = self._wake + token.decode()
        while True:
            asked = time.monotonic()
            if self._ask("enter", token):
                self._granted(token, asked + self.lease / 1000)
                return True
            left = self._sleep if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            if left > SERVER_TICK:
                self.redis.blpop([wake], timeout=min(self._sleep, left - SERVER_TICK))
            else:
                time.sleep(min(left, SERVER_TICK / 5))

    def _ask(self, verb: str, token: bytes) -> bool:
        return bool(self.script(self.redis, self._keys, [verb, token, self.lease, self._wake]))

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, self.token = self._mine("release"), None
        with typed_errors(self.name):
            held = self._ask("leave", token)
        if not held:
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )
