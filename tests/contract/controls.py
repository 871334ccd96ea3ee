"""Locks made to break what no lock of the catalogue breaks, so that each case is seen to fail."""

from __future__ import annotations

import secrets
from typing import Any

from redis import Redis
from redis.exceptions import LockError

from locks.fair_lock import FairLock
from locks.fenced import FencedLock
from locks.server import LuaScript
from locks.setnx import SetnxLock
from locks.timing import poll_until
from locks.token_lock import TokenLock


class SetnxThenExpire(SetnxLock):
    """SETNX and EXPIRE are two commands: after a crash in between, the lock stays for ever."""

    slug = "control-setnx-expire"
    lease_step = 1.0

    def __init__(self, name: str, *, redis: Redis, lease: float = 5.0, poll: float = 0.1) -> None:
        super().__init__(name, redis=redis, poll=poll)
        self.lease = int(lease)

    def acquire(self, timeout: float | None = None) -> bool:
        return super().acquire(timeout) and bool(self.redis.expire(self.name, self.lease))


class StuckQueue(TokenLock):
    """First come, first served, but a dead waiter stays in the queue for ever."""

    slug = "control-stuck-queue"

    def acquire(self, timeout: float | None = None) -> bool:
        token, queue = secrets.token_hex(8).encode(), f"{{{self.name}}}:queue"
        self.redis.rpush(queue, token)

        def first() -> bool:
            return bool(self.redis.lindex(queue, 0) == token)

        if not poll_until(first, self.poll, timeout):
            self.redis.lrem(queue, 1, token)
            return False
        self.token = token
        return True

    def release(self) -> None:
        self.redis.lpop(f"{{{self.name}}}:queue")
        self.token = None


class NoFallBack(TokenLock):
    """Loads its script once, and then always sends only the hash."""

    slug = "control-no-fall-back"

    class Sha(LuaScript):
        loaded = False

        def __call__(self, redis: Redis, keys: Any, args: Any = ()) -> Any:
            if not self.loaded:
                redis.script_load(self.text)
                self.loaded = True
            return redis.evalsha(self.sha, len(keys), *keys, *args)

    release_script = Sha("token_release.lua")


class ForgetfulFence(FencedLock):
    """Its counter is deleted with the lock."""

    slug = "control-forgetful-fence"

    def release(self) -> None:
        self.redis.delete(self._keys[1])
        super().release()


class RawErrors(TokenLock):
    """Raises what the client library raises."""

    slug = "control-raw-errors"

    def release(self) -> None:
        if self.token is None:
            raise LockError("not held")
        super().release()


class QueuedIsInside(FairLock):
    """Mistakes a place in the queue for the lock."""

    slug = "control-queued-is-inside"

    def acquire(self, timeout: float | None = None) -> bool:
        return super().acquire(0.0) or timeout is None


#: case → a lock that must break it
CONTROLS: dict[str, type[Any]] = {
    "crash-in-acquire": SetnxThenExpire,
    "lease-expiry": QueuedIsInside,
    "waiter-crash": StuckQueue,
    "noscript": NoFallBack,
    "fencing": ForgetfulFence,
    "typed-errors": RawErrors,
}
