"""token-pubsub: the token lock whose waiters sleep until a release is published.

    A: acquire → taken
    B: acquire → 9.8 s left; SUBSCRIBE; acquire again (a release may have come before the subscription)
    A: release: DEL and PUBLISH in one script
    B, C, D: "free" → acquire, acquire, acquire        all wake up, one gets it, the others sleep again

    and it breaks as `token` does:
    A: (paused past its lease)   B: (wakes when the lease it was told is over) acquire, read 100, write 120
    A: write 110                                                             B's 20 are gone

Guarantees   the same as `token`. A waiter wakes at the release, not at the next poll. If the message never comes
             because the holder crashed, the waiter loses no more than the rest of the lease.
Breaks when  `token` breaks. Every release wakes every waiter: with n waiters, a hand-over costs n attempts, and
             the order is luck.
Costs        1 round trip to acquire, 1 to release. A waiter takes a second connection, 1 round trip to subscribe,
             and 1 for every release that it hears.
Source       Redisson's RLock: a channel for each lock.
"""

from __future__ import annotations

import secrets
import time
from typing import ClassVar

from redis import Redis
from redis.client import PubSub
from redis.exceptions import TimeoutError as RedisTimeoutError

from locks.base import NO_FENCING, NO_RENEWER, without
from locks.errors import LockLost
from locks.hazards import OWNED_LEASE, Hazard
from locks.server import LuaScript, socket_timeout, typed_errors
from locks.timing import A_DAY, ends_at
from locks.token_lock import TokenLock


class TokenPubSubLock(TokenLock):
    """`token` with PUBLISH at the release and SUBSCRIBE while waiting."""

    slug = "token-pubsub"
    title = "Token lock, woken by publish/subscribe"
    source = "A19: publish/subscribe; Redisson's RLock (F6)"
    breaks_when = "`token` breaks; every release wakes every waiter"
    round_trips = "1 + 1; a waiter 3 and more"
    #: a waiter takes a second connection, and there may be none left
    withstands = OWNED_LEASE | {Hazard.RENEWAL_DIES, Hazard.STAMPEDE}
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated") | {
        "fairness": "every waiter wakes: the first to ask gets it"
    }
    not_applicable: ClassVar[dict[str, str]] = NO_RENEWER | NO_FENCING

    acquire_script = LuaScript("token_pubsub_acquire.lua")
    release_script = LuaScript("token_pubsub_release.lua")

    def __init__(self, name: str, *, redis: Redis, lease: float = 10.0) -> None:
        """`lease` of the key in seconds."""
        super().__init__(name, redis=redis, lease=lease)
        self._channel = f"{{{self.name}}}:released"

    def acquire(self, timeout: float | None = None) -> bool:
        token = secrets.token_hex(16).encode()
        deadline = ends_at(timeout)
        with typed_errors(self.name):
            if self._attempt(token):
                return True
            if timeout is not None and timeout <= 0:
                return False
            return self._wait(token, deadline)

    def _attempt(self, token: bytes) -> bool:
        asked = time.monotonic()
        left = self.acquire_script(self.redis, [self.name], [token, self.lease])
        self._until_free = None if left is None or left < 0 else asked + left / 1000
        if left is not None:
            return False
        self._granted(token, asked + self.lease / 1000)
        return True

    def _wait(self, token: bytes, deadline: float | None) -> bool:
        with self.redis.pubsub() as messages:  # type: ignore[no-untyped-call]
            messages.subscribe(self._channel)
            if not self._confirmed(messages, deadline):
                return False
            while not self._attempt(token):
                ends = [end for end in (self._until_free, deadline) if end is not None]
                left = min(ends) - time.monotonic() if ends else 1.0
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                messages.get_message(timeout=min(max(left, 0.001), A_DAY))
        return True

    def _confirmed(self, messages: PubSub, deadline: float | None) -> bool:
        """Wait until the subscription is confirmed; from then on no release is missed. False: the wait time ended.
        Raises redis-py's TimeoutError."""
        limit = socket_timeout(self.redis)
        ends = [deadline, None if limit is None else time.monotonic() + limit]
        end = min((each for each in ends if each is not None), default=float("inf"))
        while messages.get_message(timeout=max(0.0, min(end - time.monotonic(), 1.0))) is None:
            if time.monotonic() < end:
                continue
            if end == deadline:
                return False
            raise RedisTimeoutError("the subscription was not confirmed")
        return True

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, self.token = self._mine("release"), None
        with typed_errors(self.name):
            deleted = self.release_script(self.redis, [self.name, self._channel], [token])
        if not deleted:
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )
