"""replicated: the token lock, granted only when enough replicas have it too.

    A: SET lock a7f3 NX PX 10000 → OK
    A: WAIT 1 1000 → 0                     the replica is cut off: compare-and-delete, LockUnavailable
    the primary dies, the replica is promoted: nobody was inside

    A: SET lock a7f3 NX PX 10000 → OK, WAIT 1 1000 → 1, read 100
    the primary dies; of two replicas the one *without* the key is promoted (it was the only one in reach)
    B:                                     SET lock 91c2 NX PX 10000 → OK: both are inside

Guarantees   the same as `token`, also through a failover to any replica that confirmed. The time spent waiting is
             subtracted from the validity. A key that is not confirmed is deleted, and the lock is not acquired.
Breaks when  `token` breaks. A replica that did not confirm is promoted: `replicas` set to all of them prevents this,
             but then one replica that is down stops every caller. Clients still reach an old primary (split brain).
             A release that is lost (in a failover, say) keeps the lock until its lease ends.
Costs        2 round trips to acquire, one of which waits for the replicas; 1 to release.
Source       the Valkey manual on WAIT: "a best-effort attempt to increase data safety", not consensus.
"""

from __future__ import annotations

import contextlib
import time
from typing import ClassVar

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import RedisError

from locks.base import without
from locks.errors import LockUnavailable
from locks.hazards import Hazard
from locks.server import one_session
from locks.timing import milliseconds
from locks.token_lock import TokenLock


class ReplicatedLock(TokenLock):
    """`token`, granted only when WAIT confirms it."""

    slug = "replicated"
    title = "Token lock confirmed by replicas (WAIT)"
    source = "B12: WAIT, with its answer checked; Valkey manual (F5)"
    guarantees = "as `token`, also through a failover to a replica that confirmed"
    breaks_when = "a replica that did not confirm is promoted; split brain; the section outlasts the lease"
    round_trips = "2 + 1"
    withstands = TokenLock.withstands | {Hazard.FAILOVER}
    fails: ClassVar[dict[str, str]] = without(TokenLock.fails, "acquire-repeated", "failover")

    def __init__(
        self,
        name: str,
        *,
        redis: Redis,
        lease: float = 10.0,
        poll: float = 0.05,
        replicas: int = 1,
        confirm: float = 1.0,
    ) -> None:
        """`replicas`: how many must have the lock. Seconds: `lease`; `poll` between two attempts; `confirm`, which is
        how long an attempt waits for the replicas (less than the client's socket time-out)."""
        super().__init__(name, redis=redis, lease=lease, poll=poll)
        if isinstance(redis, RedisCluster):
            raise TypeError(f"{self.slug} needs a session with one server: give the client of one server")
        self.replicas, self.confirm = replicas, milliseconds(confirm, "a confirmation")

    def _attempt(self, token: bytes) -> bool:
        written = False
        try:
            with one_session(self.redis) as connection:  # WAIT confirms what its own session wrote
                asked = time.monotonic()
                written = bool(connection.set(self.name, token, nx=True, px=self.lease))
                confirmed = written and self._confirmed(connection)
        except (
            BaseException
        ):  # an interrupt too. By now the connection, perhaps the only one, is back in the pool
            if written:
                self._undo(token)
            raise
        if not written:
            return False
        until = asked + self.lease / 1000
        if not confirmed or time.monotonic() >= until:
            self._undo(token)
            why = "the lease was over before it was confirmed" if confirmed else self._refusal()
            raise LockUnavailable(f"{self.name}: {why}; deleted, not acquired")
        self._granted(token, until)
        return True

    def _start_again(self, token: bytes) -> bool:
        """As in TokenLock. Raises LockUnavailable if the replicas did not confirm: a server that takes over then has
        the old lease, and so does `held`."""
        with one_session(self.redis) as connection:
            extended = self.extend_script(connection, [self.name], [token, self.lease])
            if extended and not self._confirmed(connection):
                raise LockUnavailable(f"{self.name}: {self._refusal()}; the lease is unchanged")
        return bool(extended)

    def _confirmed(self, connection: Redis) -> bool:
        return int(connection.wait(self.replicas, self.confirm)) >= self.replicas

    def _refusal(self) -> str:
        return f"fewer than {self.replicas} replicas confirmed within {self.confirm} ms"

    def _undo(self, token: bytes) -> None:
        with contextlib.suppress(RedisError):  # if this fails as well, the lease ends it
            self.release_script(self.redis, [self.name], [token])
