"""token-leaky: the token lock, which takes a connection from the pool for every command and never returns it.

    pool of 8: ........
    A: SET lock … NX PX → OK            x.......    a connection of the factory, and no close()
    A: compare-and-delete → 1           xx......
    … three more sections               xxxxxxxx
    A: SET lock …                       waits for a free connection, for ever; so does everyone in this process

Guarantees   the same as `token`, for the first few commands of a process.
Breaks when  the pool is empty: after `pool_size` commands the process stalls. A test that runs a section or two
             passes. A lock that is held by then cannot be released, and ends with its lease.
Costs        1 round trip and 1 lost connection for each command.
Source       the daily-job article (C9): it takes a Jedis connection out of the factory by reflection, and never
             returns it. A JedisPool has 8 connections and waits without limit.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from redis import BlockingConnectionPool, Redis

from locks.base import without
from locks.errors import LockLost
from locks.hazards import NONE
from locks.server import typed_errors
from locks.token_lock import TokenLock

EMPTY_POOL = "every command keeps its connection: the process's pool runs empty"


class TokenLeakyLock(TokenLock):
    """`token` that loses a connection with every command."""

    slug = "token-leaky"
    title = "Token lock that leaks connections"
    source = "C9: a connection taken by reflection, and never given back"
    guarantees = "as `token`, for the first commands of a process"
    breaks_when = "the connection pool is empty: the process stalls"
    withstands = NONE
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated") | dict.fromkeys(
        ("endurance", "holder-crash", "lease-expiry", "lost-reply", "renewal", "wait-time"), EMPTY_POOL
    )

    _pools: ClassVar[WeakKeyDictionary[Redis, BlockingConnectionPool]] = WeakKeyDictionary()

    def __init__(
        self,
        name: str,
        *,
        redis: Redis,
        lease: float = 10.0,
        poll: float = 0.05,
        pool_size: int = 8,
        pool_wait: float | None = None,
    ) -> None:
        """Seconds: `lease`, `poll`, `pool_wait` for a free connection (None, as published: no limit).
        `pool_size`: connections for each client `redis`, which its locks share."""
        super().__init__(name, redis=redis, lease=lease, poll=poll)
        if redis not in self._pools:
            given = redis.connection_pool
            self._pools[redis] = BlockingConnectionPool(  # type: ignore[no-untyped-call]
                max_connections=pool_size,
                timeout=pool_wait,
                connection_class=given.connection_class,
                **given.connection_kwargs,
            )

    def _command(self, *words: bytes | str | int) -> Any:
        pool = self._pools[self.redis]
        connection = pool.get_connection()  # type: ignore[no-untyped-call]  # and never released
        connection.send_command(*words)
        return connection.read_response()

    def _attempt(self, token: bytes) -> bool:
        asked = time.monotonic()
        if not self._command("SET", self.name, token, "NX", "PX", self.lease):
            return False
        self._granted(token, asked + self.lease / 1000)
        return True

    def release(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, self.token = self._mine("release"), None
        with typed_errors(self.name):
            deleted = self._command("EVAL", self.release_script.text, 1, self.name, token)
        if not deleted:
            raise LockLost(
                f"{self.name}: the lease ended before the release; re-read what was written inside"
            )

    def extend(self) -> None:
        """Raises LockNotHeld if this object holds nothing, LockLost if the lease had already ended."""
        token, asked = self._mine("extend"), time.monotonic()
        with typed_errors(self.name):
            extended = self._command("EVAL", self.extend_script.text, 1, self.name, token, self.lease)
        if not extended:
            self.token = None
            raise LockLost(f"{self.name}: the lease ended before the extension; stop writing")
        self._valid_until = asked + self.lease / 1000
